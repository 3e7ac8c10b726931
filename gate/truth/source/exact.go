package source

import (
	"errors"
	"fmt"
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
