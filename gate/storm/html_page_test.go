package storm

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// element is a part of a page.
type element struct {
	name string
	attr map[string]string
	text string // of it and all in it
	all  []*element
}

// readPage parses a page strictly but for what HTML leaves open.
func readPage(t *testing.T, page string) *element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &element{}
	open := []*element{root}
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, page)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			for _, parent := range open {
				parent.all = append(parent.all, e)
			}
			open = append(open, e)
		case xml.EndElement:
			if last := open[len(open)-1]; last.name != token.Name.Local {
				t.Fatalf("</%s> ends <%s>", token.Name.Local, last.name)
			}
			open = open[:len(open)-1]
		case xml.CharData:
			for _, e := range open {
				e.text += string(token)
			}
		}
	}
	if len(open) != 1 {
		t.Fatalf("<%s> is not closed", open[len(open)-1].name)
	}
	return root
}

func (e *element) named(name string) []*element {
	var found []*element
	for _, part := range e.all {
		if part.name == name {
			found = append(found, part)
		}
	}
	return found
}

// id is the part with that id; nothing when there is none.
func (e *element) id(id string) *element {
	for _, part := range e.all {
		if part.attr["id"] == id {
			return part
		}
	}
	return &element{}
}

// table is the cells of the table with that id, with its head and foot.
func (e *element) table(id string) [][]string {
	var rows [][]string
	for _, row := range e.id(id).named("tr") {
		var cells []string
		for _, cell := range row.all {
			if (cell.name == "td" || cell.name == "th") && cell.attr["aria-hidden"] == "" {
				cells = append(cells, strings.TrimSpace(cell.text))
			}
		}
		rows = append(rows, cells)
	}
	return rows
}
