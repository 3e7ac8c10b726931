package rules

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	day = 24 * time.Hour
	// longestDuration keeps sums and multiples of durations far from overflow.
	longestDuration = 3650 * day
)

var (
	bareNumberPattern = regexp.MustCompile(`^[-+]?[0-9._]+$`)
	daysPattern       = regexp.MustCompile(`^([0-9]+)d(.*)$`)
	spelledOutPattern = regexp.MustCompile(`(?i)^([0-9]+)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)$`)
)

// parseDuration reads Go's durations and d for days: 250ms, 1m30s, 30d.
func parseDuration(s scalar) (any, error) {
	text := s.text
	if bareNumberPattern.MatchString(text) {
		n := strings.TrimLeft(text, "+-")
		return nil, fmt.Errorf("%s has no unit: write %ss for seconds, or %sms, %sm, %sh, %sd", text, n, n, n, n, n)
	}
	if strings.HasPrefix(text, "-") {
		return nil, fmt.Errorf("%s is before now: a duration cannot be negative", text)
	}
	var total time.Duration
	rest := text
	if m := daysPattern.FindStringSubmatch(text); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || n > int64(longestDuration/day) {
			return nil, errTooLong(text)
		}
		total, rest = time.Duration(n)*day, cmp.Or(m[2], "0")
	}
	d, err := time.ParseDuration(rest)
	if err != nil || strings.HasPrefix(rest, "+") || strings.HasPrefix(rest, "-") {
		if m := spelledOutPattern.FindStringSubmatch(text); m != nil {
			unit := strings.ToLower(m[2])
			if unit != "ms" && !strings.HasPrefix(unit, "milli") {
				unit = unit[:1]
			} else {
				unit = "ms"
			}
			return nil, fmt.Errorf("%q is not a duration: write %s%s", text, m[1], unit)
		}
		return nil, fmt.Errorf("%q is not a duration: write one such as 250ms, 30s, 5m, 24h, 30d", text)
	}
	if d > longestDuration-total {
		return nil, errTooLong(text)
	}
	return total + d, nil
}

func errTooLong(text string) error {
	return fmt.Errorf("%s is too long a time: the most is %s", text, FormatDuration(longestDuration))
}

// FormatDuration writes a duration as a configuration does: 30d, 24h, 1m30s, 250ms.
func FormatDuration(d time.Duration) string {
	if d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

var (
	sizePattern     = regexp.MustCompile(`^(0|[1-9][0-9]*)(KiB|MiB|GiB)$`)
	likeSizePattern = regexp.MustCompile(`(?i)^([1-9][0-9]*)\s*([kmg])i?b?$`)
	sizeUnits       = map[string]Size{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

func parseSize(s scalar) (any, error) {
	m := sizePattern.FindStringSubmatch(s.text)
	if m == nil {
		if like := likeSizePattern.FindStringSubmatch(s.text); like != nil {
			return nil, fmt.Errorf("%q is not a size: write %s%siB (1024-based, no blank)", s.text, like[1], strings.ToUpper(like[2]))
		}
		if bareNumberPattern.MatchString(s.text) {
			return nil, fmt.Errorf("%s has no unit: write KiB, MiB or GiB after it, such as 64KiB", s.text)
		}
		return nil, fmt.Errorf("%q is not a size: write one such as 64KiB, 1MiB, 2GiB", s.text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n > maxInteger/int64(sizeUnits[m[2]]) {
		return nil, fmt.Errorf("%s is too large a size", s.text)
	}
	return Size(n) * sizeUnits[m[2]], nil
}

// String writes a size as a configuration does, in the largest unit that fits.
func (s Size) String() string {
	for _, unit := range []string{"GiB", "MiB"} {
		if s >= sizeUnits[unit] && s%sizeUnits[unit] == 0 {
			return fmt.Sprintf("%d%s", s/sizeUnits[unit], unit)
		}
	}
	if s%1024 == 0 {
		return fmt.Sprintf("%dKiB", s/1024)
	}
	return fmt.Sprintf("%dB", int64(s))
}

var (
	ratePattern     = regexp.MustCompile(`^(0|[1-9][0-9]*)/([0-9]*)(ms|s|m|h|d)$`)
	likeRatePattern = regexp.MustCompile(`(?i)^([1-9][0-9]*)\s*(?:rps|qps|r/s|req/s|/\s*s|/\s*secs?|/\s*seconds?|\s+per\s+second)$`)
)

func parseRate(s scalar) (any, error) {
	m := ratePattern.FindStringSubmatch(s.text)
	if m == nil {
		if bareNumberPattern.MatchString(s.text) {
			return nil, fmt.Errorf("%s does not say per what: write %s/s, or %s/10s, %s/1m", s.text, s.text, s.text, s.text)
		}
		if like := likeRatePattern.FindStringSubmatch(s.text); like != nil {
			return nil, fmt.Errorf("%q is not a rate: write %s/s", s.text, like[1])
		}
		return nil, fmt.Errorf("%q is not a rate: write one such as 50/s, 5/10s, 100/1m", s.text)
	}
	count, err := strconv.Atoi(m[1])
	per, perErr := parseDuration(scalar{text: cmp.Or(m[2], "1") + m[3]})
	switch {
	case err != nil || count > 1_000_000_000:
		return nil, fmt.Errorf("%s is too high a rate", s.text)
	case count == 0:
		return nil, fmt.Errorf("%s lets nothing through: write at least 1, or leave the limit out", s.text)
	case perErr != nil || per.(time.Duration) > 366*day:
		return nil, fmt.Errorf("%s counts over too long a time: the most is a year", s.text)
	case per.(time.Duration) == 0:
		return nil, fmt.Errorf("%s counts over no time: write one such as 50/s", s.text)
	}
	return Rate{Count: count, Per: per.(time.Duration)}, nil
}

// String writes a rate as a configuration does.
func (r Rate) String() string {
	if r.Per == time.Second {
		return fmt.Sprintf("%d/s", r.Count)
	}
	return fmt.Sprintf("%d/%s", r.Count, FormatDuration(r.Per))
}
