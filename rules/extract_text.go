package rules

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// decimal is a JSON number as sign, significant digits without zeros at either end,
// and the power of ten of the last digit: -1.50e3 is {true, "15", 2}. Zero is "".
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// maxExponent bounds exponents of ten; what lies beyond is no decimal here.
const maxExponent = 1 << 40

// parseDecimalLiteral reads a JSON number literal (RFC 8259, 6). It fails only on
// what is none or has an exponent out of bounds.
func parseDecimalLiteral(literal string) (d decimal, ok bool) {
	rest, negative := strings.CutPrefix(literal, "-")
	mantissa, exponent := rest, ""
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponent = rest[:i], rest[i+1:]
		e, err := strconv.ParseInt(exponent, 10, 64)
		if err != nil || e > maxExponent || e < -maxExponent {
			return decimal{}, false
		}
		d.exponent = e
	}
	whole, fraction, dotted := strings.Cut(mantissa, ".")
	if !isDigits(whole) || dotted && !isDigits(fraction) {
		return decimal{}, false
	}
	d.digits = whole
	if dotted {
		d.digits = whole + fraction
		d.exponent -= int64(len(fraction))
	}
	d.digits = strings.TrimLeft(d.digits, "0")
	trimmed := strings.TrimRight(d.digits, "0")
	d.exponent += int64(len(d.digits) - len(trimmed))
	d.digits = trimmed
	if d.digits == "" {
		return decimal{}, true
	}
	d.negative = negative
	return d, true
}

// text is the exact decimal value without exponent: "7", "1000", "-0.5". It fails on
// numbers whose text would be longer than a fact may be.
func (d decimal) text() (string, bool) {
	n := int64(len(d.digits))
	if n == 0 {
		return "0", true
	}
	if n+max(d.exponent, -d.exponent) > maxFact {
		return "", false
	}
	var b strings.Builder
	if d.negative {
		b.WriteByte('-')
	}
	switch point := n + d.exponent; {
	case d.exponent >= 0:
		b.WriteString(d.digits)
		for range d.exponent {
			b.WriteByte('0')
		}
	case point > 0:
		b.WriteString(d.digits[:point])
		b.WriteByte('.')
		b.WriteString(d.digits[point:])
	default:
		b.WriteString("0.")
		for range -point {
			b.WriteByte('0')
		}
		b.WriteString(d.digits)
	}
	return b.String(), true
}

// numberText is the text of a JSON number. Plain integers are it already.
func numberText(literal string) (string, bool) {
	if isPlainInteger(literal) {
		return literal, len(literal) <= maxFact
	}
	d, ok := parseDecimalLiteral(literal)
	if !ok {
		return "", false
	}
	return d.text()
}

// isReadAlike reports whether backends that count in doubles and those that do not
// make one text of a JSON number: 7.00000000000000000001 is 7 to PHP and JavaScript.
// Plain integers of 64 bits are left to doubles only where the backend is known for it.
func isReadAlike(literal, text string, doubles bool) bool {
	if len(text) <= maxSafeDigits && isPlainInteger(text) {
		return true
	}
	if _, err := strconv.ParseInt(literal, 10, 64); err == nil && !doubles {
		return true
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return false
	}
	if strings.IndexByte(text, '.') >= 0 {
		return math.Abs(f) >= leastPlain && strconv.FormatFloat(f, 'f', -1, 64) == text
	}
	return strconv.FormatFloat(f, 'f', 0, 64) == text // exact, digit for digit
}

// leastPlain: PHP writes fractions below with an exponent, others a little later.
const leastPlain = 1e-4

// maxSafeDigits: integers that long are below 2^53.
const maxSafeDigits = 15

// isPlainInteger: digits without a leading zero.
func isPlainInteger(s string) bool {
	return isDigits(s) && (s[0] != '0' || len(s) == 1)
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// foldCase maps texts that differ only in letter case to one, by Unicode's simple
// case folding: the Kelvin sign is a k.
func foldCase(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			return r
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return unicode.ToLower(least)
	}, s)
}
