package source

import (
	"slices"
	"strings"
)

// operandBefore returns where the operand begins whose last token is given: a
// column, a function of columns, anything in parentheses, or such a thing cast with
// ::; -1 if it is none of these.
func operandBefore(tokens []token, text func(int) string, last int) int {
	i := last
	for i >= 2 && text(i-1) == "::" && isName(tokens, i) {
		i -= 2
	}
	if text(i) == ")" {
		if i = matching(tokens, text, i, -1); i < 0 || !isName(tokens, i-1) || before(text(i-1)) {
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
		if i = matching(tokens, text, i, 1); i < 0 {
			return -1
		}
	}
	for text(i+1) == "::" && isName(tokens, i+2) {
		i += 2
	}
	return i
}

// matching returns where the parenthesis is that belongs to the one at tokens[i], in
// the direction of step; -1 if there is none.
func matching(tokens []token, text func(int) string, i, step int) int {
	depth := 0
	for ; i >= 0 && i < len(tokens); i += step {
		switch text(i) {
		case "(":
			depth += step
		case ")":
			depth -= step
		}
		if depth == 0 {
			return i
		}
	}
	return -1
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
