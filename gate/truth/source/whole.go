package source

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

var (
	errNotWhole = errors.New("is no whole number")
	errTooLarge = errors.New("is beyond 64 bits")
)

// maxExact is the largest number up to which every whole one has a float64.
const maxExact = 1 << 53

// whole reads a column's value, as database/sql hands it out, as a number of units.
// Text and decimals count if they are whole, such as "7" and 7.00.
func whole(value any) (int64, error) {
	n, err := wholeOf(value)
	if err != nil {
		return 0, fmt.Errorf("the value %.40q %w", fmt.Sprint(printable(value)), err)
	}
	return n, nil
}

func wholeOf(value any) (int64, error) {
	switch v := value.(type) {
	case int64:
		return v, nil
	case uint64:
		if v > math.MaxInt64 {
			return 0, errTooLarge
		}
		return int64(v), nil
	case float32:
		return wholeOf(float64(v))
	case float64:
		switch {
		case v != math.Trunc(v): // NaN too
			return 0, errNotWhole
		case math.Abs(v) > maxExact:
			return 0, errTooLarge
		}
		return int64(v), nil
	case string:
		return parseWhole(strings.TrimRight(v, " ")) // character(n) is padded
	case []byte:
		return wholeOf(string(v))
	}
	return 0, errNotWhole
}

// printable is a value as an error shows it.
func printable(value any) any {
	if text, ok := value.([]byte); ok {
		return string(text)
	}
	return value
}

// parseWhole reads a decimal number (RFC 8259, section 6, leading zeros and a plus
// sign allowed) exactly: 7, 7.00, 1e3 and 120e-1 are whole.
func parseWhole(text string) (int64, error) {
	negative := strings.HasPrefix(text, "-")
	unsigned := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
	if negative && strings.HasPrefix(text, "-+") {
		return 0, errNotWhole
	}
	mantissa, exponent := unsigned, 0
	if i := strings.IndexAny(unsigned, "eE"); i >= 0 {
		var err error
		// What does not fit here is too large, or no number, whatever the rest.
		if exponent, err = strconv.Atoi(unsigned[i+1:]); err != nil || exponent < -1000 || exponent > 1000 {
			return 0, errNotWhole
		}
		mantissa = unsigned[:i]
	}
	integer, fraction, dotted := strings.Cut(mantissa, ".")
	if integer == "" || dotted && fraction == "" || !onlyDigits(integer) || !onlyDigits(fraction) {
		return 0, errNotWhole
	}
	// The number is digits × 10^exponent; zeros at its end move into the exponent.
	digits := integer + fraction
	exponent -= len(fraction)
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant)
	significant = strings.TrimLeft(significant, "0")
	switch {
	case significant == "":
		return 0, nil
	case exponent < 0:
		return 0, errNotWhole
	case len(significant)+exponent > len("9223372036854775808"):
		return 0, errTooLarge
	}
	significant += strings.Repeat("0", exponent)
	if negative {
		significant = "-" + significant
	}
	n, err := strconv.ParseInt(significant, 10, 64)
	if err != nil {
		return 0, errTooLarge
	}
	return n, nil
}

func onlyDigits(text string) bool {
	return strings.Trim(text, "0123456789") == ""
}
