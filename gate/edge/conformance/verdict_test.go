package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// byChance is the verdict that goes for both outcomes of a case with chance.
const byChance = "same, or the next request suffers, as it happens"

// verdict says in a few words what the proxy made of the case.
func (o *observation) verdict(c *conformanceCase, p *proxy) string {
	text := o.outcome(c, p)
	if c.chance && p.pollsPool && (text == "same" || strings.Contains(text, "the next request gets")) {
		return byChance
	}
	return text
}

func (o *observation) outcome(c *conformanceCase, p *proxy) string {
	words := o.atBackend(c, p)
	switch {
	case len(o.seen) == 0:
	case c.answer != "" && !c.upgrade || c.hangUp:
		words = append(words, o.atClient(c)...)
	default:
		words = append(words, o.answered(c)...)
	}
	if o.leftover != "" {
		words = append(words, "**desync**: the backend is left with "+quote(o.leftover))
	}
	if !o.ended {
		words = append(words, "then nothing")
	}
	if len(words) == 0 {
		return "same"
	}
	return strings.Join(words, ", ")
}

// atBackend compares the requests that came with those that were sent.
func (o *observation) atBackend(c *conformanceCase, p *proxy) (words []string) {
	sent := readRequests(c.raw)
	switch {
	case len(o.seen) == 0 && len(o.answers) == 0 && c.cut:
		return []string{"cut"} // with or without its head at the backend, as it happens
	case len(o.seen) == 0:
		return []string{o.refusal()}
	case c.hangUp && len(o.seen) == len(sent)+1 && o.seen[len(sent)].line == o.seen[len(sent)-1].line:
		words = append(words, "sent twice")
	case len(o.seen) != len(sent):
		words = append(words, fmt.Sprintf("%d instead of %d requests", len(o.seen), len(sent)))
	}
	if c.answer != "" && !c.upgrade {
		return words // the row is about the answer
	}
	for i := range min(len(sent), len(o.seen)) {
		for _, w := range requestDifferences(sent[i], o.seen[i], p, c.whole) {
			if !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	return words
}

// refusal is what the client got without the backend.
func (o *observation) refusal() string {
	answer := "no answer"
	if len(o.answers) > 0 {
		answer = statusOf(o.answers[0])
	}
	if o.after {
		return answer + ", goes on"
	}
	return answer + ", closed"
}

// answered looks at the answers to requests that the backend answered with their
// own target: who gets another one gets another's.
func (o *observation) answered(c *conformanceCase) (words []string) {
	if len(o.interim) > 0 {
		words = append(words, strconv.Itoa(o.interim[0].status())+" first")
	}
	if len(o.answers) == 0 {
		return append(words, "no answer")
	}
	if sent := readRequests(c.raw); !strings.Contains(sent[0].line, "HTTP/") {
		return append(words, statusOf(o.answers[0]))
	}
	if c.upgrade && o.answers[0].status() == 101 {
		if o.answers[0].body == ping {
			return append(words, "tunnelled")
		}
		return append(words, "101, then nothing is tunnelled")
	}
	if o.desync() {
		words = append(words, "**desync**")
	}
	switch rest := o.answers[min(len(o.seen), len(o.answers)):]; {
	case len(rest) > 0 && !o.after:
		words = append(words, "then "+statusOf(rest[0]))
	case !o.after && !c.cut:
		words = append(words, "then closed")
	}
	return words
}

// desync reports an answer of the backend to another request than its own, or to
// none.
func (o *observation) desync() bool {
	seen := o.seen
	if o.after {
		seen = append(slices.Clone(seen), &message{line: "GET " + after})
	}
	for i, got := range o.answers {
		switch {
		case got.status() >= 400: // the proxy's own
		case i >= len(seen), seen[i].method() != "HEAD" && got.body != seen[i].target():
			return true
		}
	}
	return len(o.answers) < len(seen)
}

func statusOf(answer *message) string {
	if status := answer.status(); status != 0 {
		return strconv.Itoa(status)
	}
	return "an answer without head"
}

// atClient compares the answer that came with the one that the backend gave.
func (o *observation) atClient(c *conformanceCase) (words []string) {
	given, interim, at := givenAnswer(c)
	for _, m := range interim {
		passed := slices.ContainsFunc(o.interim, func(got *message) bool { return got.status() == m.status() })
		words = append(words, fmt.Sprintf("%d %s", m.status(), map[bool]string{true: "passed on", false: "dropped"}[passed]))
	}
	// How much of an answer came before its end is chance.
	if at >= len(o.answers) || o.answers[at].cut {
		return append(words, "cut")
	}
	got := o.answers[at]
	switch {
	case given == nil || got.status() != given.status():
		words = append(words, statusOf(got))
	case got.status() == 101:
		words = append(words, "101")
	default:
		words = append(words, answerDifferences(given, got, c.whole)...)
	}
	switch rest := o.answers[at+1:]; {
	case len(rest) > 0 && rest[0].status() >= 400:
		words = append(words, "the next request gets "+statusOf(rest[0]))
	case len(rest) > 0 && rest[0].body != after:
		words = append(words, fmt.Sprintf("**desync**: the next request gets %s", quote(rest[0].line)))
	case len(rest) == 0 && !c.cut:
		words = append(words, "then closed")
	}
	return words
}

// givenAnswer is the answer that the script holds, nil where it holds none, and
// the place of its request among the case's.
func givenAnswer(c *conformanceCase) (given *message, interim []*message, at int) {
	method := ""
	for i, m := range readRequests(c.raw) {
		if m.target() != first {
			method, at = m.method(), i
		}
	}
	in := newReader(c.answer)
	readAnswers(in, []string{method}, func(m *message) {
		switch {
		case given != nil: // bytes behind the answer
		case m.status() < 200 && m.status() != 101 && m.status() != 0:
			interim = append(interim, m)
		default:
			given = m
			given.fields = slices.DeleteFunc(given.fields, func(f field) bool {
				return f == field{"Connection", "close"} // that of the backend, and no one else's
			})
		}
	}, func() {})
	return given, interim, at
}

// requestDifferences leaves out what every proxy adds or renames; the case with
// whole tells of that.
func requestDifferences(sent, got *message, p *proxy, whole bool) (words []string) {
	if got.method() != sent.method() {
		words = append(words, "method "+got.method())
	}
	if got.target() != sent.target() {
		words = append(words, "target "+quote(got.target()))
	}
	if version := word(got.line, 2); version != word(sent.line, 2) {
		words = append(words, "as "+version)
	}
	added := func(name string) bool {
		return whole || !slices.ContainsFunc([]string{
			"Accept-Encoding", "Connection", "Forwarded", "Host", "Via",
			"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-Id",
		}, func(usual string) bool { return strings.EqualFold(name, usual) })
	}
	renamed := func(name, value string) bool {
		return !whole && strings.EqualFold(name, "Host") && value == p.host
	}
	words = append(words, differences(sent, got, added, renamed, p.host)...)
	if whole {
		words = append(words, spelling(sent, got)...)
	}
	if inDoubt(got) {
		words = append(words, "**framing in doubt**")
	}
	return words
}

func answerDifferences(given, got *message, whole bool) (words []string) {
	added := func(name string) bool {
		return whole || !slices.ContainsFunc([]string{"Connection", "Content-Type", "Date", "Server"},
			func(usual string) bool { return strings.EqualFold(name, usual) })
	}
	words = differences(given, got, func(name string) bool {
		return added(name) && !strings.HasPrefix(name, "Gate-")
	}, func(string, string) bool { return false }, "")
	if whole {
		words = append(words, spelling(given, got)...)
	}
	return words
}

// differences in fields, trailers and body.
func differences(sent, got *message, added func(name string) bool, renamed func(name, value string) bool, host string) (words []string) {
	var without, with, changed []string
	for i, f := range sent.fields {
		if firstOf(sent.fields, f.name) != i {
			continue
		}
		values := got.values(f.name)
		switch {
		case len(values) == 0:
			without = append(without, nameOf(f))
		case len(values) == 1 && renamed(f.name, values[0]):
		case !slices.Equal(values, sent.values(f.name)):
			value := strings.Join(values, "` and `")
			if host != "" {
				value = strings.ReplaceAll(value, host, "BACKEND")
			}
			if f.name == "Date" {
				value = "now"
			}
			changed = append(changed, f.name+": `"+visible(value)+"`")
		}
	}
	for i, f := range got.fields {
		if firstOf(got.fields, f.name) == i && firstOf(sent.fields, f.name) < 0 && added(f.name) {
			with = append(with, f.name)
		}
	}
	if len(without) > 0 {
		words = append(words, "without "+strings.Join(without, " and "))
	}
	words = append(words, changed...)
	if len(with) > 0 {
		words = append(words, "adds "+strings.Join(with, " and "))
	}
	if got.body != sent.body {
		words = append(words, "body "+quote(got.body))
	}
	for _, f := range sent.trailers {
		if firstOf(got.trailers, f.name) < 0 {
			words = append(words, "without trailer "+f.name)
		}
	}
	return words
}

// spelling tells of fields that arrive in another order or letter case.
func spelling(sent, got *message) (words []string) {
	var order, kept []string
	for _, f := range sent.fields {
		if firstOf(got.fields, f.name) >= 0 {
			order = append(order, f.name)
		}
	}
	for _, f := range got.fields {
		if firstOf(sent.fields, f.name) >= 0 {
			kept = append(kept, f.name)
		}
	}
	if !slices.EqualFunc(order, kept, strings.EqualFold) {
		words = append(words, "other order")
	}
	slices.Sort(order)
	slices.Sort(kept)
	if !slices.Equal(order, kept) {
		words = append(words, "other letter case")
	}
	return words
}

// inDoubt reports a head that servers frame in different ways.
func inDoubt(m *message) bool {
	coding, length := m.values("Transfer-Encoding"), m.values("Content-Length")
	return len(coding)+len(length) > 1 || len(coding) == 1 && !strings.EqualFold(coding[0], "chunked") ||
		len(length) == 1 && !isNumber(length[0])
}

func firstOf(fields []field, name string) int {
	return slices.IndexFunc(fields, func(f field) bool { return strings.EqualFold(f.name, name) })
}

// nameOf shows a line that is no field as what it is.
func nameOf(f field) string {
	if f.name == "" || strings.ContainsAny(f.name, " \t\r\x00") {
		return quote(f.name)
	}
	return f.name
}

func quote(s string) string { return "`" + visible(s) + "`" }

// visible writes what cannot be seen as the table's head explains.
func visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\r' && i+1 < len(s) && s[i+1] == '\n':
			b.WriteString("⏎")
			i++
		case c < ' ' || c >= 0x7f:
			b.WriteString(strings.Trim(strconv.Quote(string([]byte{c})), `"`))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
