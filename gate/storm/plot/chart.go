// Package plot draws charts as SVG for a place inside an HTML page.
//
// A chart takes the width of its place: positions are percentages, while text and
// lines keep the page's size, so that it can be read on a phone and on paper. Its
// text stands outside the drawing area: the page has to leave room around it, and
// gives it its colours:
//
//	.plot { overflow: visible; margin: 1.5rem 1rem 2rem 4.5rem; width: calc(100% - 5.5rem); height: 14rem; }
//	.plot .grid line { … }  .plot text { … }  .plot .line.a { stroke: … }  .plot .area.a { fill: … }
package plot

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Chart is a chart of values over spans of X.
type Chart struct {
	ID          string // unique on the page; title and description are found by it
	Title       string
	Description string // what a person who does not see it should know
	X, Y        Axis
	Stacked     bool // areas upon one another, else lines
	Series      []Series
}

// Series is one line or area.
type Series struct {
	Name  string
	Class string // of the style sheet
	Spans []Span // in order
}

// Span is a value that holds from one X to another. NaN is none.
type Span struct {
	From, To float64
	Value    float64
}

// side is the length of the drawing area's sides in its own coordinates.
const side = 1000

// SVG is the chart as an element. Text in it is escaped.
func (c *Chart) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot" role="img" aria-labelledby="%[1]s-title %[1]s-desc">`+"\n", html.EscapeString(c.ID))
	fmt.Fprintf(&b, "<title id=\"%[1]s-title\">%[2]s</title><desc id=\"%[1]s-desc\">%[3]s</desc>\n",
		html.EscapeString(c.ID), html.EscapeString(c.Title), html.EscapeString(c.Description))
	c.drawAxes(&b)
	fmt.Fprintf(&b, `<svg viewBox="0 0 %[1]d %[1]d" preserveAspectRatio="none" width="100%%" height="100%%">`+"\n", side)
	if c.Stacked {
		c.drawAreas(&b)
	} else {
		c.drawLines(&b)
	}
	b.WriteString("</svg>\n</svg>")
	return b.String()
}

// drawAxes draws a line across the chart for each tick of Y, and the text of all ticks.
func (c *Chart) drawAxes(b *strings.Builder) {
	b.WriteString(`<g class="grid" aria-hidden="true">` + "\n")
	for _, tick := range c.Y.ticks {
		y := 100 - 100*c.Y.place(tick.at)
		fmt.Fprintf(b, `<line x1="0" x2="100%%" y1="%[1]s%%" y2="%[1]s%%"/><text x="0" dx="-8" y="%[1]s%%" dy=".32em" text-anchor="end">%[2]s</text>`+"\n",
			short(y), html.EscapeString(tick.text))
	}
	for _, tick := range c.X.ticks {
		fmt.Fprintf(b, `<text x="%s%%" y="100%%" dy="1.5em" text-anchor="middle">%s</text>`+"\n", short(100*c.X.place(tick.at)), html.EscapeString(tick.text))
	}
	b.WriteString("</g>\n")
}

func (c *Chart) drawLines(b *strings.Builder) {
	for _, s := range c.Series {
		var path strings.Builder
		pen := false
		for _, span := range s.Spans {
			if math.IsNaN(span.Value) {
				pen = false
				continue
			}
			step := "M"
			if pen {
				step = "L"
			}
			fmt.Fprintf(&path, "%s%s %sH%s", step, c.x(span.From), c.y(span.Value), c.x(span.To))
			pen = true
		}
		drawPath(b, "line", s, path.String())
	}
}

// drawAreas lays each series on the sum of those before it.
func (c *Chart) drawAreas(b *strings.Builder) {
	var base []float64
	for _, s := range c.Series {
		if base == nil {
			base = make([]float64, len(s.Spans))
		}
		var up, back strings.Builder
		for i, span := range s.Spans {
			fmt.Fprintf(&up, "%s %sH%sL", c.x(span.From), c.y(base[i]+span.Value), c.x(span.To))
		}
		for i := len(s.Spans) - 1; i >= 0; i-- {
			fmt.Fprintf(&back, "%s %sH%sL", c.x(s.Spans[i].To), c.y(base[i]), c.x(s.Spans[i].From))
			base[i] += s.Spans[i].Value
		}
		drawPath(b, "area", s, "M"+up.String()+strings.TrimSuffix(back.String(), "L")+"Z")
	}
}

func drawPath(b *strings.Builder, kind string, s Series, path string) {
	fmt.Fprintf(b, `<path class="%s %s" vector-effect="non-scaling-stroke" d="%s"><title>%s</title></path>`+"\n",
		kind, html.EscapeString(s.Class), path, html.EscapeString(s.Name))
}

func (c *Chart) x(v float64) string { return short(side * c.X.place(v)) }
func (c *Chart) y(v float64) string { return short(side - side*c.Y.place(v)) }
