package truth

import (
	"regexp"
	"strings"

	"github.com/slotgate/slotgate/rules"
)

// reviewSQL is a statement that shows a finding's bookings, latest first, for a person
// to read before anything is done about them: bookings.query with the slot written
// out, as a named query whose columns are called id, subject and made whatever the
// database calls them. Where the query is a plain one of one table it ends in a
// commented suggestion to delete them. "" where a name holds a control character, which
// no literal of all databases can.
func reviewSQL(t *rules.TruthConfig, f *Finding) string {
	if t.SQL == nil || t.Bookings == nil {
		return ""
	}
	ids := make([]string, len(f.Bookings))
	for i, b := range f.Bookings {
		id, ok := literal(t.SQL.Driver, b.ID)
		if !ok {
			return ""
		}
		ids[i] = id
	}
	slot, ok := literal(t.SQL.Driver, f.Slot)
	if !ok {
		return ""
	}
	query := strings.TrimRight(strings.TrimSpace(t.Bookings.Query), "; \t\r\n")
	columns, order := "id, subject", "id DESC"
	if f.dated {
		columns, order = "id, subject, made", "made DESC, id DESC"
	}
	var b strings.Builder
	b.WriteString("WITH b (" + columns + ") AS (\n" + withSlot(t.SQL.Driver, query, slot) + "\n)\n" +
		"SELECT * FROM b WHERE id IN (" + strings.Join(ids, ", ") + ") ORDER BY " + order + ";")
	if column, table, ok := plainTable(query); ok {
		b.WriteString("\n-- DELETE FROM " + table + " WHERE " + column + " IN (" + strings.Join(ids, ", ") + ");")
		if t.Means() == rules.MeansRemaining {
			b.WriteString("\n-- That gives no units back: correct what capacity's query reads too.")
		}
	}
	return b.String()
}

// literal is a text as SQL writes it, quoted for the driver's database as it is by
// default. A control character could end a line of a comment.
func literal(driver, text string) (string, bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == 0x85 }) {
		return "", false
	}
	text = strings.ReplaceAll(text, "'", "''")
	if driver == "mysql" {
		text = strings.ReplaceAll(text, `\`, `\\`)
	}
	return "'" + text + "'", true
}

// withSlot puts the literal in the place of each placeholder. What stands in quotes or
// comments is left as it is.
func withSlot(driver, query, slot string) string {
	placeholder := "?"
	if driver == "postgres" {
		placeholder = "$1"
	}
	var b strings.Builder
	for at := 0; at < len(query); {
		end := at + piece(driver, query[at:])
		if text := query[at:end]; text == placeholder {
			b.WriteString(slot)
		} else {
			b.WriteString(text)
		}
		at = end
	}
	return b.String()
}

// piece is the length of what comes first in a query: a quoted text or name, a
// comment, a placeholder, or one character.
func piece(driver, rest string) int {
	switch {
	case rest[0] == '\'' || rest[0] == '"' || rest[0] == '`':
		return quotedLength(rest, driver == "mysql" && rest[0] != '`')
	case strings.HasPrefix(rest, "--") || rest[0] == '#' && driver == "mysql":
		return upTo(rest, "\n")
	case strings.HasPrefix(rest, "/*"):
		return upTo(rest, "*/")
	case driver == "postgres" && dollarQuote.MatchString(rest):
		tag := dollarQuote.FindString(rest)
		return len(tag) + upTo(rest[len(tag):], tag)
	case driver == "postgres" && numbered.MatchString(rest):
		return len(numbered.FindString(rest))
	}
	return 1
}

var (
	dollarQuote = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*)?\$`)
	numbered    = regexp.MustCompile(`^\$[0-9]+`)
)

// quotedLength is up to the end of a quoted text; a doubled quote reads as an end and a
// new beginning, which comes to the same.
func quotedLength(rest string, backslash bool) int {
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && backslash:
			i++
		case rest[i] == rest[0]:
			return i + 1
		}
	}
	return len(rest)
}

// upTo is the length up to the end of mark, or of the text.
func upTo(rest, mark string) int {
	if i := strings.Index(rest, mark); i >= 0 {
		return i + len(mark)
	}
	return len(rest)
}

// plain is SELECT column, … FROM table WHERE …, of one table and nothing else.
var plain = regexp.MustCompile(`(?is)^SELECT\s+([A-Za-z_][A-Za-z0-9_]*)\s*,[^()]*?\sFROM\s+([A-Za-z_][A-Za-z0-9_.]*)\s+WHERE\s(.*)$`)

// unplain are words that make a query more than plain, or a list of ids less than all
// that it means.
var unplain = regexp.MustCompile(`(?i)\b(JOIN|UNION|INTERSECT|EXCEPT|GROUP|HAVING|DISTINCT|AS|SELECT)\b|--|/\*|#|;`)

// plainTable is the id's column and the table of a plain query.
func plainTable(query string) (column, table string, ok bool) {
	m := plain.FindStringSubmatch(query)
	if m == nil || unplain.MatchString(query[len("SELECT"):]) {
		return "", "", false
	}
	return m[1], m[2], true
}
