package compare

import (
	"fmt"
	"html"
	"io"
	"slices"
)

// The plot's measures, in px.
const (
	plotWidth = 760
	labelEnd  = 170 // names end here, bars begin
	barSpace  = 450 // of the longest bar; its figure stands behind it
	barHeight = 10
	rowGap    = 8
	titleGap  = 30
)

// plotStyle gives text a colour for light and for dark pages; the bars' colours are
// readable on both.
const plotStyle = `text{font:12px system-ui,sans-serif;fill:#424a53}
.title{font-weight:600;font-size:13px}.figure{font-size:10px}.name{text-anchor:end}
.ours{fill:#2f81f7}.theirs{fill:#8b949e}.second{opacity:.6}
@media(prefers-color-scheme:dark){text{fill:#c9d1d9}}`

// WriteSVG draws requests a second of every scenario, and latencies of those whose
// backend takes time. Each contender has two bars: the upper one for fewer
// connections, or the median; the lower one for more, or the 99th percentile.
func (r *Results) WriteSVG(w io.Writer) error {
	page := &writer{w: w}
	panels := r.panels()
	height := 10
	for _, p := range panels {
		height += titleGap + p.height()
	}
	page.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Slotgate and its peers under the same load">`+"\n", plotWidth, height)
	page.printf("<style>%s</style>\n", plotStyle)
	y := 0
	for _, p := range panels {
		y += titleGap
		page.printf(`<text class="title" x="8" y="%d">%s</text>`+"\n", y-10, html.EscapeString(p.title))
		for _, row := range p.rows {
			row.draw(page, y, p.scale)
			y += row.height()
		}
	}
	page.printf("</svg>\n")
	return page.err
}

// panel is one scenario.
type panel struct {
	title string
	scale float64 // what the longest bar stands for
	rows  []row
}

// row is one contender.
type row struct {
	name string
	bars []bar
}

type bar struct {
	value  float64
	figure string
}

func (p panel) height() int {
	total := 0
	for _, row := range p.rows {
		total += row.height()
	}
	return total
}

func (p panel) longest() float64 {
	longest := 0.0
	for _, row := range p.rows {
		for _, b := range row.bars {
			longest = max(longest, b.value)
		}
	}
	return longest
}

func (r row) height() int { return len(r.bars)*barHeight + rowGap }

func (r row) draw(page *writer, y int, scale float64) {
	class := "theirs"
	if r.name == gate.Name {
		class = "ours"
	}
	page.printf(`<text class="name" x="%d" y="%d">%s</text>`+"\n", labelEnd-8, y+len(r.bars)*barHeight/2+4, html.EscapeString(r.name))
	for i, b := range r.bars {
		if i > 0 {
			class += " second"
		}
		length := b.value / scale * barSpace
		page.printf(`<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>`, class, labelEnd, y+i*barHeight, length, barHeight-1)
		page.printf(`<text class="figure" x="%.1f" y="%d">%s</text>`+"\n", labelEnd+length+5, y+(i+1)*barHeight-2, b.figure)
	}
}

// panels arranges what was measured. Throughputs share one scale, so that bars of
// different scenarios can be compared.
func (r *Results) panels() []panel {
	var panels []panel
	most := 0.0
	for _, s := range r.options.Scenarios {
		p := panel{title: s.Title}
		for _, c := range s.Contenders {
			if line := r.row(&s, c); len(line.bars) > 0 {
				p.rows = append(p.rows, line)
			}
		}
		if len(p.rows) == 0 {
			continue
		}
		if s.Delay > 0 {
			p.title += ": p50 and p99 in ms"
			p.scale = p.longest()
		} else {
			p.title += ": requests a second"
			most = max(most, p.longest())
		}
		panels = append(panels, p)
	}
	for i := range panels {
		if panels[i].scale == 0 {
			panels[i].scale = most
		}
	}
	return panels
}

// row reads a contender's bars in one scenario: none where it was not measured.
func (r *Results) row(s *Scenario, c Contender) row {
	line := row{name: c.Name}
	for _, connections := range slices.Sorted(slices.Values(s.Connections)) {
		cell := r.Cell(s.Name, c.Name, connections)
		if cell == nil {
			continue
		}
		if s.Delay > 0 {
			for _, quantile := range []func(Sample) float64{p50, p99} {
				value := cell.Median(quantile)
				line.bars = append(line.bars, bar{value, fmt.Sprintf("%.2f", value)})
			}
			continue
		}
		value := cell.Median(perSecond)
		line.bars = append(line.bars, bar{value, fmt.Sprintf("%.1f k (%d connections)", value/1000, connections)})
	}
	return line
}
