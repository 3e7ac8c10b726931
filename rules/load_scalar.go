package rules

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// maxInteger is the largest whole number that every part counts exactly: the
// store's scripts and JSON readers have floating point numbers only.
const maxInteger = 1<<53 - 1

// scalar is a single value as it was written. A plain one may be a number or a
// boolean, a quoted one is text. What a variable expanded to counts as plain, since
// in { } it has to be quoted.
type scalar struct {
	text  string
	plain bool
}

// scalar reads a node's single value; false for lists and mappings.
func (d *document) scalar(node *yaml.Node) (scalar, bool) {
	return scalar{node.Value, !quoted(node) || d.expanded[node]}, node.Kind == yaml.ScalarNode
}

func quoted(node *yaml.Node) bool {
	const styles = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return node.Style&styles != 0
}

// isNull reports a value that is left out or written as null. A variable's text is
// never null.
func (d *document) isNull(node *yaml.Node) bool {
	if node.Kind != yaml.ScalarNode || quoted(node) || d.expanded[node] {
		return false
	}
	return slices.Contains([]string{"", "~", "null", "Null", "NULL"}, node.Value)
}

// textType reads a type of the schema from a single value. What parse returns is
// convertible to the type.
type textType struct {
	want  string
	parse func(scalar) (any, error)
}

var textTypes = map[reflect.Type]textType{
	reflect.TypeFor[bool]():          {"true or false", parseBool},
	reflect.TypeFor[int]():           {"a whole number", parseInteger},
	reflect.TypeFor[int64]():         {"a whole number", parseInteger},
	reflect.TypeFor[float64]():       {"a number", parseDecimal},
	reflect.TypeFor[time.Duration](): {"a duration such as 30s", parseDuration},
	reflect.TypeFor[Size]():          {"a size such as 64KiB", parseSize},
	reflect.TypeFor[Rate]():          {"a rate such as 50/s", parseRate},
	reflect.TypeFor[Outcome]():       {"an outcome such as booked", parseOutcome},
	reflect.TypeFor[netip.Prefix]():  {"an address range such as 10.0.0.0/8", parsePrefix},
	reflect.TypeFor[time.Time]():     {"a time such as 2026-12-01T09:00:00+08:00", parseTime},
}

func compareNumbers(a, b reflect.Value) int {
	if a.CanFloat() {
		return cmp.Compare(a.Float(), b.Float())
	}
	return cmp.Compare(a.Int(), b.Int())
}

func parseBool(s scalar) (any, error) {
	switch {
	case s.text == "true" && s.plain:
		return true, nil
	case s.text == "false" && s.plain:
		return false, nil
	}
	switch strings.ToLower(s.text) {
	case "true", "yes", "on", "y", "1":
		return nil, fmt.Errorf("%s is not a boolean here: write true, without quotes", s.text)
	case "false", "no", "off", "n", "0":
		return nil, fmt.Errorf("%s is not a boolean here: write false, without quotes", s.text)
	}
	return nil, fmt.Errorf("%q is not a boolean: write true or false", s.text)
}

var (
	integerPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	decimalPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	// oddNumberPattern is what one YAML version or another reads as a number, and the
	// next as something else.
	oddNumberPattern = regexp.MustCompile(`^[-+]?(0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|\.[0-9][0-9_]*([eE][-+]?[0-9]+)?|\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

func parseInteger(s scalar) (any, error) {
	switch {
	case !integerPattern.MatchString(s.text):
		if err := oddNumberError(s.text); err != nil {
			return nil, err
		}
		if decimalPattern.MatchString(s.text) {
			return nil, fmt.Errorf("%s is not a whole number: write plain digits", s.text)
		}
		return nil, fmt.Errorf("%q is not a whole number", s.text)
	case !s.plain:
		return nil, fmt.Errorf("%q is text: write %s without quotes", s.text, s.text)
	}
	n, err := strconv.ParseInt(s.text, 10, 64)
	if err != nil || n > maxInteger || n < -maxInteger {
		return nil, fmt.Errorf("%s is too large a number: the most is %d", s.text, int64(maxInteger))
	}
	return n, nil
}

func parseDecimal(s scalar) (any, error) {
	switch {
	case !decimalPattern.MatchString(s.text):
		if err := oddNumberError(s.text); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%q is not a number", s.text)
	case !s.plain:
		return nil, fmt.Errorf("%q is text: write %s without quotes", s.text, s.text)
	}
	f, err := strconv.ParseFloat(s.text, 64)
	if err != nil {
		return nil, fmt.Errorf("%s is too large a number", s.text)
	}
	return f, nil
}

// oddNumberError explains a number in a form that YAML 1.1 and 1.2 do not both
// read the same way; nil for anything else.
func oddNumberError(text string) error {
	if !oddNumberPattern.MatchString(text) || decimalPattern.MatchString(text) {
		return nil
	}
	digits := strings.TrimPrefix(strings.ReplaceAll(text, "_", ""), "+")
	rest := strings.TrimPrefix(digits, "-")
	if len(rest) > 1 && strings.Trim(rest, "0123456789") == "" {
		digits = strings.TrimSuffix(digits, rest) + cmp.Or(strings.TrimLeft(rest, "0"), "0")
	} else if n, err := strconv.ParseInt(digits, 0, 64); err == nil { // 0x10, 0o10, 0b10
		digits = strconv.FormatInt(n, 10)
	} else if f, err := strconv.ParseFloat(digits, 64); err == nil && f-f == 0 {
		digits = strconv.FormatFloat(f, 'f', -1, 64)
	} else {
		return fmt.Errorf("%s is not a number that can be counted", text)
	}
	return fmt.Errorf("%s is a number that YAML versions read differently: write %s", text, digits)
}

// parseOutcome reads a word that the field's enum allows.
func parseOutcome(s scalar) (any, error) {
	if i := slices.Index(outcomeNames[1:], s.text); i >= 0 {
		return Outcome(i + 1), nil
	}
	return nil, fmt.Errorf("%q is not an outcome", s.text)
}

func parsePrefix(s scalar) (any, error) {
	prefix, err := netip.ParsePrefix(s.text)
	if err == nil {
		if prefix != prefix.Masked() {
			return nil, fmt.Errorf("%s has bits set behind its length: write %s", s.text, prefix.Masked())
		}
		return prefix, nil
	}
	if addr, err := netip.ParseAddr(s.text); err == nil && addr.Zone() == "" {
		return nil, fmt.Errorf("%s is an address, not a range: write %s/%d", s.text, s.text, addr.BitLen())
	}
	return nil, fmt.Errorf("%q is not an address range: write one such as 10.0.0.0/8", s.text)
}

func parseTime(s scalar) (any, error) {
	if s.text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s.text)
	var wrong *time.ParseError
	switch {
	case err == nil:
		return t, nil
	case errors.As(err, &wrong) && strings.HasPrefix(wrong.Message, ": "):
		return nil, fmt.Errorf("%q is not a time%s", s.text, wrong.Message) // out of range
	}
	return nil, fmt.Errorf("%q is not an RFC 3339 time with its zone: write one such as 2026-12-01T09:00:00+08:00", s.text)
}
