package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
)

// reportFormats are the values of --format.
var reportFormats = []string{"table", "json", "csv"}

// reportWriter writes rows as they are found, in constant memory.
type reportWriter[Row, Report any] interface {
	row(Row) error
	// report ends a pool, whose rows came before.
	report(Report) error
	// end is called once, also after an error.
	end(complete bool) error
}

// jsonReports writes {"reports":[…],"complete":…}. A report is what `run` keeps in
// report_dir, with its rows in front; complete tells that every slot was compared.
type jsonReports[Row, Report any] struct {
	w       *bufio.Writer
	rows    string           // the member of a report that has them
	bare    func(Report) any // a report without that member
	reports int
	within  int // rows of the report that is being written
}

func newJSONReports[Row, Report any](w io.Writer, rows string, bare func(Report) any) *jsonReports[Row, Report] {
	j := &jsonReports[Row, Report]{w: bufio.NewWriter(w), rows: rows, bare: bare}
	j.text(`{"reports": [`)
	return j
}

// text writes. An error stays until Flush returns it.
func (j *jsonReports[Row, Report]) text(s string) { _, _ = j.w.WriteString(s) }

func (j *jsonReports[Row, Report]) begin() {
	if j.reports > 0 {
		j.text(",")
	}
	j.reports++
	j.text("\n  {\"" + j.rows + "\": [")
}

func (j *jsonReports[Row, Report]) row(row Row) error {
	if j.within == 0 {
		j.begin()
	} else {
		j.text(",")
	}
	j.within++
	line, err := json.Marshal(row)
	if err != nil {
		return err
	}
	j.text("\n    ")
	_, err = j.w.Write(line)
	return err
}

func (j *jsonReports[Row, Report]) report(report Report) error {
	if j.within == 0 {
		j.begin()
	} else {
		j.text("\n  ")
	}
	j.within = 0
	members, err := json.Marshal(j.bare(report))
	if err != nil {
		return err
	}
	j.text("], ")
	_, err = j.w.Write(bytes.TrimPrefix(members, []byte("{")))
	return err
}

func (j *jsonReports[Row, Report]) end(complete bool) error {
	if complete {
		j.text("\n], \"complete\": true}\n")
	} else {
		j.text("\n], \"complete\": false}\n")
	}
	return j.w.Flush()
}

// csvReports writes rows and nothing else, under one header.
type csvReports[Row, Report any] struct {
	w       *csv.Writer
	records func(Row) [][]string
}

func newCSVReports[Row, Report any](w io.Writer, header []string, records func(Row) [][]string) *csvReports[Row, Report] {
	c := &csvReports[Row, Report]{w: csv.NewWriter(w), records: records}
	_ = c.w.Write(header) // an error stays until the end
	return c
}

func (c *csvReports[Row, Report]) row(row Row) error { return c.w.WriteAll(c.records(row)) }

func (c *csvReports[Row, Report]) report(Report) error { return nil }

func (c *csvReports[Row, Report]) end(bool) error {
	c.w.Flush()
	return c.w.Error()
}
