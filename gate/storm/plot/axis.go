package plot

import (
	"math"
	"strconv"
	"time"
)

// Axis is a range of values and where it is marked. Values outside of it are drawn at
// its ends.
type Axis struct {
	low, high float64
	log       bool
	ticks     []tick
}

type tick struct {
	at   float64
	text string
}

// place is where a value stands between the axis's ends, from 0 to 1.
func (a Axis) place(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	return min(max((v-low)/(high-low), 0), 1)
}

// Linear is an axis from 0 to at least high, marked at about four round numbers; to 1
// where high is not above 0.
func Linear(high float64, text func(float64) string) Axis {
	if high <= 0 {
		high = 1
	}
	decade := math.Pow(10, math.Ceil(math.Log10(high)))
	step := decade
	for _, share := range []float64{0.5, 0.2, 0.1, 0.05} {
		if high/step >= 2.5 {
			break
		}
		step = decade * share
	}
	a := Axis{high: step * math.Ceil(high/step)}
	for i := 0.0; i*step <= a.high*(1+1e-9); i++ {
		a.ticks = append(a.ticks, tick{i * step, text(i * step)})
	}
	return a
}

// Logarithmic is an axis between two values above 0, or the next 1, 2 or 5 times a
// power of ten beyond them. It is marked at these where they are few, else at powers of
// ten.
func Logarithmic(low, high float64, text func(float64) string) Axis {
	var all []float64
	for power := math.Floor(math.Log10(low)) - 1; power <= math.Log10(high)+1; power++ {
		for _, times := range []float64{1, 2, 5} {
			all = append(all, times*math.Pow(10, power))
		}
	}
	for all[1] <= low*(1+1e-9) {
		all = all[1:]
	}
	for len(all) > 2 && all[len(all)-2] >= high*(1-1e-9) {
		all = all[:len(all)-1]
	}
	a := Axis{low: all[0], high: all[len(all)-1], log: true}
	for _, at := range all {
		power := math.Log10(at)
		if len(all) <= 8 || math.Abs(power-math.Round(power)) < 1e-9 {
			a.ticks = append(a.ticks, tick{at, text(at)})
		}
	}
	return a
}

// timeSteps are round times; beyond the last, whole days are.
var timeSteps = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// Time is an axis of seconds from 0 to the end, marked at six round times or fewer.
func Time(end time.Duration, text func(time.Duration) string) Axis {
	const most = 6
	step := (end/(24*time.Hour*most) + 1) * 24 * time.Hour
	for _, s := range timeSteps {
		if end/s < most {
			step = s
			break
		}
	}
	a := Axis{high: max(end, time.Millisecond).Seconds()}
	for at := time.Duration(0); at <= end; at += step {
		a.ticks = append(a.ticks, tick{at.Seconds(), text(at)})
	}
	return a
}

// Quantiles is an axis of shares from 0 towards 1 on which each further nine takes the
// same room (the logarithm of what is left), up to one in count.
func Quantiles(count int) Axis {
	a := Axis{high: max(Nines(1-1/float64(count)), Nines(0.9))}
	for _, q := range []struct {
		share float64
		text  string
	}{{0, "0"}, {0.5, "50 %"}, {0.9, "90 %"}, {0.99, "99 %"}, {0.999, "99.9 %"}, {0.9999, "99.99 %"}, {0.99999, "99.999 %"}} {
		if Nines(q.share) <= a.high+1e-9 {
			a.ticks = append(a.ticks, tick{Nines(q.share), q.text})
		}
	}
	return a
}

// Nines is where a share below 1 stands on a Quantiles axis: 0.9 at 1, 0.99 at 2.
func Nines(share float64) float64 { return -math.Log10(1 - share) }

// Share is what stands there.
func Share(nines float64) float64 { return 1 - math.Pow(10, -nines) }

// short writes a coordinate with as many digits as can be seen.
func short(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// High is the value at the axis's end.
func (a Axis) High() float64 { return a.high }
