package plot

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func plain(v float64) string { return fmt.Sprint(math.Round(v*1000) / 1000) }

func TestLines(t *testing.T) {
	c := Chart{
		ID: "speed", Title: "Speed", Description: "Slow, then fast.",
		X: Time(4*time.Second, time.Duration.String), Y: Linear(10, plain),
		Series: []Series{{Name: "car", Class: "a", Spans: []Span{
			{0, 1, 5}, {1, 2, 10}, {2, 3, math.NaN()}, {3, 4, 20}, // the last is beyond the axis
		}}},
	}
	want := `<svg class="plot" role="img" aria-labelledby="speed-title speed-desc">
<title id="speed-title">Speed</title><desc id="speed-desc">Slow, then fast.</desc>
<g class="grid" aria-hidden="true">
<line x1="0" x2="100%" y1="100%" y2="100%"/><text x="0" dx="-8" y="100%" dy=".32em" text-anchor="end">0</text>
<line x1="0" x2="100%" y1="80%" y2="80%"/><text x="0" dx="-8" y="80%" dy=".32em" text-anchor="end">2</text>
<line x1="0" x2="100%" y1="60%" y2="60%"/><text x="0" dx="-8" y="60%" dy=".32em" text-anchor="end">4</text>
<line x1="0" x2="100%" y1="40%" y2="40%"/><text x="0" dx="-8" y="40%" dy=".32em" text-anchor="end">6</text>
<line x1="0" x2="100%" y1="20%" y2="20%"/><text x="0" dx="-8" y="20%" dy=".32em" text-anchor="end">8</text>
<line x1="0" x2="100%" y1="0%" y2="0%"/><text x="0" dx="-8" y="0%" dy=".32em" text-anchor="end">10</text>
<text x="0%" y="100%" dy="1.5em" text-anchor="middle">0s</text>
<text x="25%" y="100%" dy="1.5em" text-anchor="middle">1s</text>
<text x="50%" y="100%" dy="1.5em" text-anchor="middle">2s</text>
<text x="75%" y="100%" dy="1.5em" text-anchor="middle">3s</text>
<text x="100%" y="100%" dy="1.5em" text-anchor="middle">4s</text>
</g>
<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%">
<path class="line a" vector-effect="non-scaling-stroke" d="M0 500H250L250 0H500M750 0H1000"><title>car</title></path>
</svg>
</svg>`
	if got := c.SVG(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAreasStandOnOneAnother(t *testing.T) {
	c := Chart{
		X: Time(2*time.Second, time.Duration.String), Y: Linear(10, plain), Stacked: true,
		Series: []Series{
			{Name: "low", Class: "a", Spans: []Span{{0, 1, 2}, {1, 2, 4}}},
			{Name: "high", Class: "b", Spans: []Span{{0, 1, 3}, {1, 2, 6}}},
		},
	}
	for _, want := range []string{
		`<path class="area a" vector-effect="non-scaling-stroke" d="M0 800H500L500 600H1000L1000 1000H500L500 1000H0Z"><title>low</title></path>`,
		`<path class="area b" vector-effect="non-scaling-stroke" d="M0 500H500L500 0H1000L1000 600H500L500 800H0Z"><title>high</title></path>`,
	} {
		if got := c.SVG(); !strings.Contains(got, want) {
			t.Errorf("no\n%s\nin\n%s", want, got)
		}
	}
}

func TestTextIsEscaped(t *testing.T) {
	bad := `"><script>alert('1')</script>&`
	c := Chart{
		ID: bad, Title: bad, Description: bad,
		X: Time(time.Second, func(time.Duration) string { return bad }), Y: Linear(1, func(float64) string { return bad }),
		Series: []Series{{Name: bad, Class: bad}, {}},
	}
	for _, c.Stacked = range []bool{false, true} {
		d := xml.NewDecoder(strings.NewReader(c.SVG()))
		found := 0
		for {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, c.SVG())
			}
			switch token := token.(type) {
			case xml.StartElement:
				if token.Name.Local == "script" {
					t.Fatalf("a script in\n%s", c.SVG())
				}
			case xml.CharData:
				if string(token) == bad {
					found++
				}
			}
		}
		if found < 4 {
			t.Errorf("the text stands there %d times in\n%s", found, c.SVG())
		}
	}
}
