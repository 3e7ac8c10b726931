package source

import "strings"

// grammar is where the lexical rules of the databases differ.
type grammar struct {
	numbered   bool // $1; else ?
	backslash  bool // '\'' is a string, # begins a comment, and -- does before a blank only
	dollars    bool // $tag$ … $tag$ is a string, E'\'' too, comments nest
	bracketed  bool // [name] is an identifier
	exactMatch func(operand, placeholder string) string
}

type tokenKind uint8

const (
	wordToken        tokenKind = iota // a keyword, an identifier, a number
	quotedToken                       // "…", `…`, […]
	textToken                         // '…'
	placeholderToken                  // ? or $1
	operatorToken                     // a run of operator characters
	markToken                         // one other character, such as ( , ; .
)

// token is a piece of a query. Blanks and comments are none.
type token struct {
	kind       tokenKind
	start, end int
}

// tokenize splits a query. It only has to find placeholders and what they are
// compared with; what it cannot read goes on to the database, which says so.
func (g grammar) tokenize(query string) []token {
	var tokens []token
	for at := 0; at < len(query); {
		kind, end := g.next(query, at)
		if end > at && kind != skipped {
			tokens = append(tokens, token{kind, at, end})
		}
		at = end
	}
	return tokens
}

// skipped is the kind of blanks and comments.
const skipped tokenKind = 255

const operatorCharacters = "<>=!~|&^*/+-%@#:"

func (g grammar) next(query string, at int) (tokenKind, int) {
	rest := query[at:]
	switch c := rest[0]; {
	case isBlank(c):
		return skipped, at + 1
	case strings.HasPrefix(rest, "/*"):
		return skipped, at + g.comment(rest)
	case g.lineComment(rest):
		return skipped, at + until(rest, "\n", 0)
	case c == '\'':
		return textToken, at + quoted(rest, '\'', g.backslash)
	case c == '"':
		return quotedToken, at + quoted(rest, '"', g.backslash)
	case c == '`':
		return quotedToken, at + quoted(rest, '`', false)
	case c == '[' && g.bracketed:
		return quotedToken, at + until(rest, "]", 1)
	case c == '?' && !g.numbered:
		return placeholderToken, at + 1
	case c == '$' && g.numbered && len(rest) > 1 && isDigit(rest[1]):
		return placeholderToken, at + 1 + span(rest[1:], isDigit)
	case c == '$' && g.dollars:
		if end := dollarQuoted(rest); end > 0 {
			return textToken, at + end
		}
		return markToken, at + 1
	case g.dollars && (c == 'e' || c == 'E') && strings.HasPrefix(rest[1:], "'"):
		return textToken, at + 1 + quoted(rest[1:], '\'', true)
	case isWord(c):
		return wordToken, at + span(rest, isWord)
	case strings.IndexByte(operatorCharacters, c) >= 0:
		return operatorToken, at + g.operator(rest)
	}
	return markToken, at + 1
}

// operator returns the length of a run of operator characters. A comment ends it.
func (g grammar) operator(rest string) int {
	for i := 1; i < len(rest); i++ {
		if strings.IndexByte(operatorCharacters, rest[i]) < 0 ||
			strings.HasPrefix(rest[i:], "/*") || g.lineComment(rest[i:]) {
			return i
		}
	}
	return len(rest)
}

func (g grammar) lineComment(rest string) bool {
	if g.backslash {
		return rest[0] == '#' || strings.HasPrefix(rest, "--") && (len(rest) == 2 || isBlank(rest[2]))
	}
	return strings.HasPrefix(rest, "--")
}

func (g grammar) comment(rest string) int {
	depth := 1
	for i := 2; i < len(rest); i++ {
		switch {
		case strings.HasPrefix(rest[i:], "*/"):
			i++
			if depth--; depth == 0 {
				return i + 1
			}
		case g.dollars && strings.HasPrefix(rest[i:], "/*"):
			i++
			depth++
		}
	}
	return len(rest)
}

// quoted returns the length of a text that begins with its quote. A doubled quote
// reads as an end and a new beginning, which comes to the same.
func quoted(rest string, quote byte, backslash bool) int {
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && backslash:
			i++
		case rest[i] == quote && i+1 < len(rest) && rest[i+1] == quote:
			i++
		case rest[i] == quote:
			return i + 1
		}
	}
	return len(rest)
}

// dollarQuoted returns the length of a $tag$ … $tag$, 0 if there is none.
func dollarQuoted(rest string) int {
	tag := 1 + span(rest[1:], func(c byte) bool { return isWord(c) && c != '$' })
	if tag >= len(rest) || rest[tag] != '$' {
		return 0
	}
	return until(rest, rest[:tag+1], tag+1)
}

// until returns where the first end after from has passed, at most the whole length.
func until(rest, end string, from int) int {
	if i := strings.Index(rest[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(rest)
}

func span(text string, in func(byte) bool) int {
	for i := range len(text) {
		if !in(text[i]) {
			return i
		}
	}
	return len(text)
}

func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWord takes all beyond ASCII for letters, as the databases do.
func isWord(c byte) bool {
	return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' || c >= 0x80
}
