package conformance

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write TABLE.md anew")

const tableFile = "TABLE.md"

// TestTable plays every case before all proxies and compares what it sees with
// TABLE.md. Another nginx than the one in the table may differ from it.
func TestTable(t *testing.T) {
	server, version := nginx(t)
	columns := []*proxy{slotgate(t, false), slotgate(t, true), reverseProxy(t), server}
	verdicts := make([][]string, len(columns))
	t.Run("proxies", func(t *testing.T) {
		for i, p := range columns {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				for _, c := range cases() {
					o := p.play(t, c)
					verdict := o.verdict(c, p)
					verdicts[i] = append(verdicts[i], verdict)
					if !p.own {
						continue
					}
					if err := c.must(c, o); (err != nil) != c.breach {
						t.Errorf("%s: %v (known breach: %t)\n%q\nbecame: %s", c.name, err, c.breach, c.raw, verdict)
					}
				}
			})
		}
	})

	var rows []row
	for i, c := range cases() {
		own := verdicts[0][i]
		if gated := verdicts[1][i]; gated != own {
			own += "; gated: " + gated
		}
		if c.breach {
			own += " (**breach**)"
		}
		rows = append(rows, row{c.name, c.rfc, c.duty, own, verdicts[2][i], verdicts[3][i], c.input()})
	}
	if *update {
		if t.Failed() {
			t.Fatalf("%s is not written", tableFile)
		}
		if err := os.WriteFile(tableFile, []byte(head(version)+render(rows)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	compare(t, rows, version)
}

// row of the table, by column.
type row [7]string

var columnNames = row{"Input", "RFC", "Duty", "Slotgate", "ReverseProxy", "nginx", "Raw"}

func (r row) line() string {
	for i, cell := range r {
		r[i] = escape(cell)
	}
	return "| " + strings.Join(r[:], " | ") + " |"
}

// nginxColumn is the column that is not compared when the versions differ.
const nginxColumn = 5

func compare(t *testing.T, rows []row, version string) {
	text, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	sameVersion := strings.HasPrefix(string(text), head(version))
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| ") && line != columnNames.line() {
			lines = append(lines, line)
		}
	}
	if len(lines) != len(rows) {
		t.Fatalf("%s has %d rows, there are %d cases; write it with -update", tableFile, len(lines), len(rows))
	}
	for i, r := range rows {
		want := strings.Split(strings.Trim(lines[i], "| "), " | ")
		for column, cell := range r {
			if column == nginxColumn && !sameVersion {
				continue
			}
			if len(want) != len(r) || want[column] != escape(cell) {
				t.Errorf("%s:\n now %s\n was %s", r[0], r, want)
				break
			}
		}
	}
}

func head(version string) string {
	return fmt.Sprintf(`# The same bytes before three proxies

Written by the test in this folder (-update); every run compares. Slotgate is this
gate's edge, ReverseProxy is net/http/httputil's with SetURL and SetXForwarded,
nginx is %s with proxy_pass, HTTP/1.1 and pooled connections. All stand
before the same backend, which notes every byte, and each gets a plain request
behind the case on the same connection.

"Same" means that the backend got the request, or the client the answer, with
method, target, fields and body as they were; else the differences are named.
What each proxy adds to every request, and the Host, which ReverseProxy and nginx
replace by the backend's name, are told in the first row only. "Gated" is said where
a request that a rule matches, which is read whole, goes another way. "Closed" and
"goes on" tell of the client's connection after an answer that the proxy made itself;
"cut" of a request or an answer that ended before it was whole, or before it began.
"**Breach**" marks what this gate does not do as the RFC asks.
Sections without a document are of RFC 9112. ⏎ is CR LF, \r and \n are bare.

`, version)
}

func render(rows []row) string {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "## %s\n\n%s\n%s|\n", g.title, columnNames.line(), strings.Repeat("|---", len(columnNames)))
		for range g.cases {
			b.WriteString(rows[0].line() + "\n")
			rows = rows[1:]
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func escape(cell string) string { return strings.ReplaceAll(cell, "|", `\|`) }

// input shows the case's bytes, and the answer where the case is about that.
func (c *conformanceCase) input() string {
	if c.shown != "" {
		return quote(c.shown)
	}
	text := quote(c.raw)
	if c.answer != "" {
		text += " → " + quote(c.answer)
	}
	if c.hangUp {
		text += " → closed"
	}
	return text
}

// groups are the parts of the table.
var groups = []struct {
	title string
	cases []*conformanceCase
}{
	{"The request line", lineCases},
	{"The target and Host", targetCases},
	{"Field lines of requests", fieldCases},
	{"Fields for one connection, and of proxies", hopCases},
	{"The length of a request's body", framingCases},
	{"Chunks of a request's body", chunkCases},
	{"Several messages on a connection", connectionCases},
	{"Heads of answers", answerCases},
	{"The length of an answer's body", answerFramingCases},
}

func cases() (all []*conformanceCase) {
	for _, g := range groups {
		all = append(all, g.cases...)
	}
	return all
}
