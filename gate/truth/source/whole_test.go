package source

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestParseWhole(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "0.000": 0, "0e5": 0, "7": 7, "+7": 7, "007": 7, "7.00": 7, "1e3": 1000, "1E+3": 1000, "120e-1": 12, "0.5e1": 5, "1.5e1": 15,
		"9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64, "922337203685477580.7e1": math.MaxInt64,
		"0.0000000000000000000000001e25": 1,
	} {
		if got, err := parseWhole(text); got != want || err != nil {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]error{
		"": errNotWhole, "-": errNotWhole, ".": errNotWhole, "7.": errNotWhole, ".5": errNotWhole, "7.5": errNotWhole, "1e-1": errNotWhole, "x": errNotWhole,
		" 7": errNotWhole, "-+7": errNotWhole, "--7": errNotWhole, "+-7": errNotWhole, "0x7": errNotWhole, "7e": errNotWhole, "1e9999999999": errNotWhole,
		"1e1001": errNotWhole, "٧": errNotWhole, "1_000": errNotWhole, "NaN": errNotWhole, "Infinity": errNotWhole, "7.0.0": errNotWhole,
		"9223372036854775808": errTooLarge, "-9223372036854775809": errTooLarge, "1e19": errTooLarge, "1e1000": errTooLarge,
	} {
		if got, err := parseWhole(text); !errors.Is(err, want) {
			t.Errorf("%q is %d (%v), want %v", text, got, err, want)
		}
	}
}

func TestParseWholeAgreesWithRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[-+]?[0-9]{1,25}(\.[0-9]{1,25})?([eE][-+]?[0-9]{1,2})?`).Draw(t, "text")
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q is no rational", text)
		}
		got, err := parseWhole(text)
		switch {
		case !exact.IsInt():
			if !errors.Is(err, errNotWhole) {
				t.Errorf("%q is %d (%v), want that it is not whole", text, got, err)
			}
		case !exact.Num().IsInt64():
			if !errors.Is(err, errTooLarge) {
				t.Errorf("%q is %d (%v), want that it is too large", text, got, err)
			}
		case err != nil || got != exact.Num().Int64():
			t.Errorf("%q is %d (%v), want %s", text, got, err, exact.Num())
		}
	})
}
