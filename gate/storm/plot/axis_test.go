package plot

import (
	"math"
	"strings"
	"testing"
	"time"
)

func marks(a Axis) string {
	var texts []string
	for _, t := range a.ticks {
		texts = append(texts, t.text)
	}
	return strings.Join(texts, " ")
}

func TestAxesAreMarkedAtRoundValues(t *testing.T) {
	clock := time.Duration.String
	for _, row := range []struct {
		axis Axis
		want string
		high float64
	}{
		{Linear(0, plain), "0 0.2 0.4 0.6 0.8 1", 1},
		{Linear(1, plain), "0 0.2 0.4 0.6 0.8 1", 1},
		{Linear(7, plain), "0 2 4 6 8", 8},
		{Linear(10.5, plain), "0 5 10 15", 15},
		{Linear(30, plain), "0 10 20 30", 30},
		{Linear(999, plain), "0 200 400 600 800 1000", 1000},
		{Logarithmic(1, 1, plain), "1 2", 2},
		{Logarithmic(0.2, 9, plain), "0.2 0.5 1 2 5 10", 10},
		{Logarithmic(0.3, 3, plain), "0.2 0.5 1 2 5", 5},
		{Logarithmic(0.004, 1500, plain), "0.01 0.1 1 10 100 1000", 2000},
		{Time(0, clock), "0s", 0.001},
		{Time(285*time.Millisecond, clock), "0s 50ms 100ms 150ms 200ms 250ms", 0.285},
		{Time(6*time.Second, clock), "0s 2s 4s 6s", 6},
		{Time(5*time.Minute, clock), "0s 1m0s 2m0s 3m0s 4m0s 5m0s", 300},
		{Time(80*time.Hour, clock), "0s 24h0m0s 48h0m0s 72h0m0s", 80 * 3600},
		{Time(20*24*time.Hour, clock), "0s 96h0m0s 192h0m0s 288h0m0s 384h0m0s 480h0m0s", 20 * 24 * 3600},
		{Quantiles(1), "0 50 % 90 %", 1},
		{Quantiles(999), "0 50 % 90 % 99 %", math.Log10(999)},
		{Quantiles(1000), "0 50 % 90 % 99 % 99.9 %", 3},
	} {
		if got := marks(row.axis); got != row.want {
			t.Errorf("marks %q, want %q", got, row.want)
		}
		if got := row.axis.High(); !(math.Abs(got-row.high) < 1e-6) {
			t.Errorf("%q ends at %v, want %v", row.want, got, row.high)
		}
	}
}

// Whatever the values are, they are within the axis and its marks are few.
func TestAxesHoldTheirValues(t *testing.T) {
	for v := 1e-7; v < 1e9; v *= 1.37 {
		if a := Linear(v, plain); a.high < v || a.high > 1.7*v || len(a.ticks) < 3 || len(a.ticks) > 7 {
			t.Errorf("up to %v: %v with %d marks", v, a.high, len(a.ticks))
		}
		for _, ratio := range []float64{1, 1.5, 9, 1e3, 1e6} {
			a := Logarithmic(v, v*ratio, plain)
			if a.low > v*(1+1e-8) || a.high < v*ratio*(1-1e-8) || a.low < v/2.6 || a.high > v*ratio*2.6 && ratio > 1 || len(a.ticks) < 2 || len(a.ticks) > 9 {
				t.Errorf("from %v to %v: from %v to %v with %d marks", v, v*ratio, a.low, a.high, len(a.ticks))
			}
		}
	}
}

func TestPlacesOnAxes(t *testing.T) {
	for _, row := range []struct {
		axis     Axis
		at, want float64
	}{
		{Linear(10, plain), 2.5, 0.25},
		{Linear(10, plain), 11, 1},
		{Linear(10, plain), -1, 0},
		{Linear(0, plain), 0.5, 0.5},
		{Logarithmic(1, 100, plain), 10, 0.5},
		{Logarithmic(1, 100, plain), 0.1, 0},
		{Quantiles(1000), Nines(0.9), 1. / 3},
		{Quantiles(1000), Nines(1), 1},
	} {
		if got := row.axis.place(row.at); !(math.Abs(got-row.want) < 1e-9) {
			t.Errorf("%v is placed at %v, want %v", row.at, got, row.want)
		}
	}
	for _, share := range []float64{0, 0.5, 0.999} {
		if got := Share(Nines(share)); !(math.Abs(got-share) < 1e-12) {
			t.Errorf("share %v comes back as %v", share, got)
		}
	}
}
