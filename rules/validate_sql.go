package rules

import (
	"slices"
	"strings"
)

// sqlReading is what a query consists of outside its quotes and comments.
type sqlReading struct {
	words      []string // upper case: key words and bare names
	parameters []string // $1, ?, ?1, :name and the like
	further    bool     // something stands behind a semicolon
	executable bool     // a comment that MySQL or MariaDB runs
	open       string   // what is not closed, "" for nothing
}

// writingWords are key words of statements that write or lock. A column may have
// such a name, but hardly without quotes.
var writingWords = []string{"INSERT", "UPDATE", "DELETE", "MERGE", "INTO"}

// writes is the first word that says that the query does more than read.
func (q *sqlReading) writes() string {
	for _, word := range q.words {
		if slices.Contains(writingWords, word) {
			return word
		}
	}
	return ""
}

// sqlScanner cuts a query into its tokens. It knows quotes, comments and parameters
// of the drivers' databases and nothing of their grammar.
type sqlScanner struct {
	driver string
	text   string
	at     int
	sqlReading
	ended bool // by a semicolon
}

func readSQL(driver, query string) *sqlReading {
	s := &sqlScanner{driver: driver, text: query}
	for s.at < len(s.text) && s.open == "" {
		if !s.skipBlank() {
			s.further = s.further || s.ended
			s.token()
		}
	}
	return &s.sqlReading
}

// skipBlank goes over one blank or comment, if one is here.
func (s *sqlScanner) skipBlank() bool {
	rest := s.text[s.at:]
	switch c := rest[0]; {
	case strings.IndexByte(" \t\r\n\f\v", c) >= 0:
		s.at++
	case s.startsLineComment(rest):
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			s.at += end
		} else {
			s.at = len(s.text)
		}
	case strings.HasPrefix(rest, "/*"):
		if s.driver == "mysql" && (strings.HasPrefix(rest, "/*!") || strings.HasPrefix(rest, "/*M!")) {
			s.executable = true
		}
		s.skipComment()
	default:
		return false
	}
	return true
}

// startsLineComment: MySQL needs a blank behind --, for 5--1 is a sum there, and has #.
func (s *sqlScanner) startsLineComment(rest string) bool {
	if s.driver != "mysql" {
		return strings.HasPrefix(rest, "--")
	}
	return rest[0] == '#' || strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' ')
}

// skipComment goes over /* … */, which PostgreSQL nests.
func (s *sqlScanner) skipComment() {
	depth := 0
	for s.at < len(s.text) {
		switch rest := s.text[s.at:]; {
		case strings.HasPrefix(rest, "/*") && (depth == 0 || s.driver == "postgres"):
			depth++
			s.at += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			s.at += 2
			if depth == 0 {
				return
			}
		default:
			s.at++
		}
	}
	s.open = "a comment"
}

func (s *sqlScanner) token() {
	rest := s.text[s.at:]
	switch c := rest[0]; {
	case c == ';':
		s.ended = true
		s.at++
	case c == '\'':
		s.skipQuoted('\'', s.driver == "mysql")
	case c == '"':
		s.skipQuoted('"', s.driver == "mysql")
	case c == '`' && s.driver != "postgres":
		s.skipQuoted('`', false)
	case c == '[' && s.driver == "sqlite":
		s.skipTo("]", "a [")
	case c == '$' && s.driver == "postgres":
		s.dollar()
	case c == '?' && s.driver == "mysql":
		s.at++
		s.parameters = append(s.parameters, "?")
	case c == '?' && s.driver == "sqlite", // also ?1, and :name and the like
		strings.IndexByte(":@$", c) >= 0 && s.driver == "sqlite" && len(rest) > 1 && isWordByte(rest[1]):
		s.at++
		s.parameters = append(s.parameters, rest[:1]+s.word())
	case isWordByte(c):
		s.named()
	default:
		s.at++
	}
}

// named reads a word, or a number. In PostgreSQL an e right before a string makes
// its backslashes escapes.
func (s *sqlScanner) named() {
	word := s.word()
	if s.driver == "postgres" && strings.EqualFold(word, "e") && strings.HasPrefix(s.text[s.at:], "'") {
		s.skipQuoted('\'', true)
		return
	}
	s.words = append(s.words, strings.ToUpper(word))
}

// dollar reads $1, or a string between $tag$ and $tag$.
func (s *sqlScanner) dollar() {
	start := s.at
	s.at++
	if s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
			s.at++
		}
		s.parameters = append(s.parameters, s.text[start:s.at])
		return
	}
	for s.at < len(s.text) && isWordByte(s.text[s.at]) && s.text[s.at] != '$' {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == '$' {
		s.skipTo(s.text[start:s.at+1], "a dollar-quoted text")
	}
}

// skipTo goes behind the next end, one byte at the least.
func (s *sqlScanner) skipTo(end, what string) {
	s.at++
	i := strings.Index(s.text[s.at:], end)
	if i < 0 {
		s.open = what
		return
	}
	s.at += i + len(end)
}

// skipQuoted goes over a quoted text. A doubled quote begins the next one at once,
// which comes to the same.
func (s *sqlScanner) skipQuoted(quote byte, escapes bool) {
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\' && escapes:
			s.at++
		case c == quote:
			s.at++
			return
		}
	}
	s.open = "a quote"
}

func (s *sqlScanner) word() string {
	start := s.at
	for s.at < len(s.text) && isWordByte(s.text[s.at]) {
		s.at++
	}
	return s.text[start:s.at]
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
