package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// statement is a query with the slot as its parameter.
type statement struct {
	setting string // where the configuration has it, for errors
	text    string
	// exact: the slot is compared with a column's own spelling. Otherwise the
	// database's equality decides alone.
	exact bool
	args  int // how often the slot is passed
}

// arguments are the slot, as often as the statement takes it.
func (s *statement) arguments(slot string) []any {
	args := make([]any, s.args)
	for i := range args {
		args[i] = slot
	}
	return args
}

// compile makes a query exact: a slot finds the rows whose column spells the slot,
// byte for byte, and no others. Databases are laxer: to an integer column "007" and
// " 7" are 7, to MySQL "7abc" is 7 too and "a1" is "A1", and two spellings that
// share a row would each be given its seats. So
//
//	column = ?
//
// goes to the database as
//
//	(column = ? AND text of column = ?)
//
// whose first half still uses the column's index. Where the query compares the slot
// in another way, with a cast or a function of it, it says itself what it takes for
// equal, and stays as it is.
func (g grammar) compile(setting, query string) (*statement, error) {
	tokens := g.tokenize(query)
	if err := g.check(query, tokens); err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	s := &statement{setting: setting, exact: true}
	var text strings.Builder
	done, placeholders, rewritten := 0, 0, 0
	for i, t := range tokens {
		if t.kind != placeholderToken {
			continue
		}
		placeholders++
		c, plain := g.comparison(query, tokens, i)
		if !plain {
			s.exact = false
			continue
		}
		text.WriteString(query[done:c.start])
		fmt.Fprintf(&text, "(%s AND %s)", query[c.start:c.end], g.exactMatch(c.operand, g.spelled()))
		done = c.end
		rewritten++
	}
	text.WriteString(query[done:])
	s.text = text.String()
	s.args = placeholders + rewritten
	if g.numbered {
		s.args = 1 + min(rewritten, 1)
	}
	return s, nil
}

// spelled is the placeholder of the slot as text.
func (g grammar) spelled() string {
	if g.numbered {
		return "$2"
	}
	return "?"
}

// check refuses what is not one statement with the slot as its only parameter.
func (g grammar) check(query string, tokens []token) error {
	placeholders := 0
	for i, t := range tokens {
		switch text := query[t.start:t.end]; {
		case t.kind == placeholderToken && g.numbered && text != "$1":
			return fmt.Errorf("has the parameter %s: the slot is its only one, $1", text)
		case t.kind == placeholderToken:
			placeholders++
		case text == ";" && i != len(tokens)-1:
			return errors.New("is more than one statement: want a single SELECT")
		}
	}
	if placeholders == 0 {
		if g.numbered {
			return errors.New("has no parameter: write $1 where the slot goes")
		}
		return errors.New("has no parameter: write ? where the slot goes")
	}
	return nil
}

// comparison is `operand = ?` or `? = operand` in a query.
type comparison struct {
	start, end int
	operand    string
}

// comparison finds what the placeholder at tokens[at] is compared with; false unless
// both sides of the = are whole operands.
func (g grammar) comparison(query string, tokens []token, at int) (comparison, bool) {
	text := func(i int) string {
		if i < 0 || i >= len(tokens) {
			return ""
		}
		return query[tokens[i].start:tokens[i].end]
	}
	equals := func(i int) bool { return text(i) == "=" || text(i) == "==" }
	var first, last, from, to int // tokens of the comparison, and of the operand
	switch {
	case equals(at - 1):
		to = at - 2
		from = operandBefore(tokens, text, to)
		first, last = from, at
	case equals(at + 1):
		from = at + 2
		to = operandAfter(tokens, text, from)
		first, last = at, to
	default:
		return comparison{}, false
	}
	if from < 0 || to < from || !before(text(first-1)) || !after(text(last+1)) {
		return comparison{}, false
	}
	return comparison{
		start: tokens[first].start, end: tokens[last].end,
		operand: query[tokens[from].start:tokens[to].end],
	}, true
}

// operandBefore returns where the operand begins whose last token is given: a
// column, a function of columns, anything in parentheses, or such a thing cast with
// ::; -1 if it is none of these.
func operandBefore(tokens []token, text func(int) string, last int) int {
	i := last
	for i >= 2 && text(i-1) == "::" && isName(tokens, i) {
		i -= 2
	}
	if text(i) == ")" {
		depth := 0
		for ; i >= 0; i-- {
			if text(i) == ")" {
				depth++
			} else if text(i) == "(" {
				if depth--; depth == 0 {
					break
				}
			}
		}
		if i < 1 || !isName(tokens, i-1) || before(text(i-1)) {
			return i // no function
		}
		i--
	}
	if !isName(tokens, i) {
		return -1
	}
	for i >= 2 && text(i-1) == "." && isName(tokens, i-2) {
		i -= 2
	}
	return i
}

// operandAfter returns where the operand ends whose first token is given, -1 if it
// is none.
func operandAfter(tokens []token, text func(int) string, first int) int {
	i := first
	if text(i) != "(" {
		if !isName(tokens, i) || quantifier(text(i)) {
			return -1
		}
		for text(i+1) == "." && isName(tokens, i+2) {
			i += 2
		}
		if text(i+1) == "(" {
			i++
		}
	}
	if text(i) == "(" {
		depth := 0
		for ; i < len(tokens); i++ {
			if text(i) == "(" {
				depth++
			} else if text(i) == ")" {
				if depth--; depth == 0 {
					break
				}
			}
		}
		if i == len(tokens) {
			return -1
		}
	}
	for text(i+1) == "::" && isName(tokens, i+2) {
		i += 2
	}
	return i
}

func isName(tokens []token, i int) bool {
	return i >= 0 && i < len(tokens) && (tokens[i].kind == wordToken || tokens[i].kind == quotedToken)
}

func quantifier(text string) bool {
	return slices.Contains([]string{"ANY", "ALL", "SOME"}, strings.ToUpper(text))
}

// before tells whether a comparison can begin behind this token: operators that bind
// tighter cannot.
func before(text string) bool {
	return slices.Contains([]string{
		"", "(", ",", "WHERE", "AND", "OR", "ON", "NOT", "HAVING", "WHEN", "SELECT", "THEN", "ELSE",
	}, strings.ToUpper(text))
}

// after tells whether a comparison ends before this token.
func after(text string) bool {
	return slices.Contains([]string{
		"", ")", ",", ";", "AND", "OR", "THEN", "WHEN", "ELSE", "END", "AS", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW",
		"ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "LOCK", "UNION", "EXCEPT", "INTERSECT",
		"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL",
	}, strings.ToUpper(text))
}
