package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// truth checks a capacity that a source tells; nil where it could not be read.
func (v *validator) truth(p place, t *TruthConfig) {
	if t == nil {
		return
	}
	if t.SQL != nil {
		v.sqlSource(p.field("sql"), t.SQL)
	} else {
		v.httpSource(p.field("http"), t.HTTP)
	}
	v.bookings(p.field("bookings"), t)
	if hot := p.field("hot"); t.Hot > t.Refresh && !hot.faulty() && !p.field("refresh").faulty() {
		hot.faultf("%s is more than refresh, which is %s: slots that are being booked are looked at more often than others, not less", FormatDuration(t.Hot), FormatDuration(t.Refresh))
	}
	v.report(p, t)
}

func (v *validator) sqlSource(p place, s *SQLSource) {
	driver := p.field("driver")
	needText(driver, s.Driver, "write postgres, mysql or sqlite")
	dsn := p.field("dsn")
	if needText(dsn, s.DSN, `write it as the driver does, best from the environment: "${BOOKING_DSN}"`) && !driver.faulty() {
		v.checkDSN(dsn, s)
	}
	query := p.field("query")
	if needText(query, s.Query, "write a SELECT of one value, such as SELECT remain FROM lesson_slot WHERE slot_id = "+parameterOf(s.Driver)) {
		checkQuery(query, s.Driver, s.Query)
	}
	total := p.field("total")
	checkTotal(total, s.Means, s.Total)
	switch {
	case s.Total.Value != Extractor{}:
		total.faultf("value is for an http source: write a number or { query: … }")
	case s.Total.Query != "":
		checkQuery(total.field("query"), s.Driver, s.Total.Query)
	}
}

// checkDSN knows the one mistake that can be told without the driver, and asks the
// driver for the others. It never shows the dsn.
func (v *validator) checkDSN(p place, s *SQLSource) {
	if s.Driver == "mysql" && strings.Contains(s.DSN, "://") {
		p.faultf("is a URL, which the mysql driver does not read: write user:password@tcp(host:3306)/database")
	} else if v.dsn != nil {
		if err := v.dsn(s.Driver, s.DSN); err != nil {
			p.faultf("%v", err)
		}
	}
}

func (v *validator) httpSource(p place, s *HTTPSource) {
	path := p.field("path")
	if needText(path, s.Path, "write a path of the backend, such as /api/lessons/{slot}") {
		checkSourcePath(path, s.Path, "{slot}")
	}
	if value := p.field("value"); !value.written {
		value.faultf("is required: write where the answer has the value, such as json:/data/remain")
	}
	total := p.field("total")
	checkTotal(total, s.Means, s.Total)
	if s.Total.Query != "" {
		total.faultf("query is for an sql source: write a number or { value: json:/… }")
	}
	headers := p.field("headers")
	checkFields(headers, s.Headers)
	for _, name := range sortedKeys(s.Headers) {
		if slices.Contains(framing, strings.ToLower(name)) {
			headers.field(name).faultf("is made by the gate: remove it")
		}
	}
}

func checkTotal(p place, means string, total TotalConfig) {
	switch {
	case means == MeansBooked && !p.written:
		p.faultf("is required, since means is booked: the remainder is total less booked; it %s", wantTotal)
	case means != MeansBooked && p.written && !p.faulty():
		p.faultf("has no place beside means: %s: remove it, or write means: booked", means)
	}
}

// bookings: each kind of source lists them in its own way.
func (v *validator) bookings(p place, t *TruthConfig) {
	if t.Bookings == nil {
		return
	}
	query, path := p.field("query"), p.field("path")
	if t.SQL != nil {
		if path.written {
			path.faultf("is for an http source: write query instead")
		}
		if needText(query, t.Bookings.Query, "write a SELECT of id, subject and, if there is one, the time, such as SELECT id, student_id, created_at FROM booking WHERE slot_id = "+parameterOf(t.SQL.Driver)) {
			checkQuery(query, t.SQL.Driver, t.Bookings.Query)
		}
		return
	}
	if query.written {
		query.faultf("is for an sql source: write path instead")
	}
	if needText(path, t.Bookings.Path, "write a path that answers 2xx where the subject has the slot and 404 where not, such as /api/lessons/{slot}/students/{subject}") {
		checkSourcePath(path, t.Bookings.Path, "{slot}", "{subject}")
	}
}

var timeOfDay = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

func (v *validator) report(p place, t *TruthConfig) {
	report, dir := p.field("report"), p.field("report_dir")
	switch {
	case t.Report != "" && !timeOfDay.MatchString(t.Report):
		report.faultf("%q is not a time of day: write hours and minutes, such as \"04:30\"", t.Report)
	case t.Report != "" && t.ReportDir == "" && !dir.faulty():
		report.faultf("needs report_dir: write the directory that the reports go to")
	}
}

// needText reports a text that has to be there and is not; true where it is.
func needText(p place, text, advice string) bool {
	switch {
	case !p.written:
		p.faultf("is required: %s", advice)
	case text == "" && !p.faulty():
		p.faultf("is empty: %s", advice)
	}
	return text != ""
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}?|\}`)

// checkSourcePath checks a path that is asked of the backend, in which each of the
// variables has to stand.
func checkSourcePath(p place, path string, variables ...string) {
	switch {
	case strings.Contains(path, "://"):
		p.faultf("%q is a URL: write its path only, the backend is upstream.url", path)
		return
	case !strings.HasPrefix(path, "/"):
		p.faultf("%q must begin with /: write /%s", path, path)
		return
	case strings.Contains(path, "#"):
		p.faultf("%q holds a #: fragments are never sent to a server", path)
		return
	case strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		p.faultf("%q holds a blank or a character beyond ASCII: write it percent-encoded", path)
		return
	}
	for _, found := range placeholder.FindAllString(path, -1) {
		if !slices.Contains(variables, found) {
			p.faultf("%q: %s stands for nothing here, only %s does%s", path, found, either(variables), didYouMean(found, variables))
			return
		}
	}
	for _, variable := range variables {
		if !strings.Contains(path, variable) {
			p.faultf("%q does not say where the %s goes: write %s there", path, strings.Trim(variable, "{}"), variable)
		}
	}
}

// checkQuery refuses a query that is not one read with the slot as its parameter.
func checkQuery(p place, driver, query string) {
	if driver == "" {
		return // has its own fault, and dialects differ
	}
	q := readSQL(driver, query)
	switch {
	case q.open != "":
		p.faultf("the query has %s that is not closed", q.open)
	case q.executable:
		p.faultf("the query has a /*! comment, which the database runs as a part of it: write the query without")
	case len(q.words) == 0 || q.words[0] != "SELECT" && q.words[0] != "WITH":
		p.faultf("a look only reads: begin the query with SELECT or WITH")
	case q.further:
		p.faultf("the query goes on behind a semicolon: write one statement")
	case q.writes() != "":
		p.faultf("a look only reads and locks nothing, and the query says %s: remove it, or quote it if it is a name", q.writes())
	default:
		checkParameters(p, driver, query, q.parameters)
	}
}

// parameterOf is how a driver's queries say where the slot goes.
func parameterOf(driver string) string {
	if driver == "postgres" || driver == "" {
		return "$1"
	}
	return "?"
}

func checkParameters(p place, driver, query string, found []string) {
	want := parameterOf(driver)
	for _, other := range found {
		if other != want {
			p.faultf("the query has the parameter %s, and the slot is the only one: write %s", other, want)
			return
		}
	}
	switch {
	case len(found) == 0:
		foreign := ""
		for _, style := range []string{"$1", "?", "{slot}"} {
			if style != want && strings.Contains(query, style) {
				foreign = fmt.Sprintf(" instead of %s", style)
				break
			}
		}
		p.faultf("the query has no parameter, so that every slot would have the same value: write %s%s where the slot goes", want, foreign)
	case len(found) > 1 && want == "?":
		p.faultf("the query has %d parameters, and the slot is bound once: name it once, such as WITH s AS (SELECT ? AS slot)", len(found))
	}
}
