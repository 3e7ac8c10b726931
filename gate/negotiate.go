package gate

import (
	"strconv"
	"strings"

	"github.com/slotgate/slotgate/rules"
)

// fieldValues are the values of a field, a line each.
func fieldValues(fields []rules.Field, name string) (values []string) {
	for i := range fields {
		if strings.EqualFold(fields[i].Name, name) {
			values = append(values, fields[i].Value)
		}
	}
	return values
}

// listed are the members of a list field without parameters, in lower case, such as
// the codings of Content-Encoding (RFC 9110, 5.6.1); identity is none.
func listed(lines []string) (members []string) {
	for _, line := range lines {
		for member := range strings.SplitSeq(line, ",") {
			member = strings.ToLower(strings.TrimSpace(member))
			if member != "" && member != "identity" {
				members = append(members, member)
			}
		}
	}
	return members
}

// acceptsCoding reports whether the lines of Accept-Encoding name a content coding,
// in lower case (RFC 9110, 12.5.3).
func acceptsCoding(lines []string, coding string) bool {
	coding = strings.TrimPrefix(coding, "x-")
	return preference(lines, func(entry string) int {
		switch strings.TrimPrefix(entry, "x-") {
		case coding:
			return 2
		case "*":
			return 1
		}
		return 0
	}) > 0
}

// acceptsType reports whether the lines of Accept let a media type pass, in lower
// case (RFC 9110, 12.5.1); "" stands for one that is not known. All of JSON is one
// type here: application/vnd.api+json is what a JSON client can read.
func acceptsType(lines []string, mediaType string) bool {
	if len(listed(lines)) == 0 || mediaType == "" {
		return true
	}
	class, _, _ := strings.Cut(mediaType, "/")
	return preference(lines, func(entry string) int {
		switch {
		case entry == mediaType, isJSONType(entry) && isJSONType(mediaType):
			return 3
		case entry == class+"/*":
			return 2
		case entry == "*/*", entry == "*":
			return 1
		}
		return 0
	}) > 0
}

func isJSONType(mediaType string) bool {
	return mediaType == "application/json" || mediaType == "text/json" || strings.HasSuffix(mediaType, "+json")
}

// preference is the weight (RFC 9110, 12.4.2) of the entry that fits best, of equals
// the highest; 0 where none does. How well an entry fits is 0 for not at all.
func preference(lines []string, fit func(entry string) int) (weight float64) {
	best := 0
	for _, line := range lines {
		for member := range strings.SplitSeq(line, ",") {
			entry, parameters, _ := strings.Cut(member, ";")
			switch n := fit(strings.ToLower(strings.TrimSpace(entry))); {
			case n == 0 || n < best:
			case n > best:
				best, weight = n, weightOf(parameters)
			default:
				weight = max(weight, weightOf(parameters))
			}
		}
	}
	return weight
}

// weightOf finds the parameter q; what cannot be read as one weighs 1.
func weightOf(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		if q, err := strconv.ParseFloat(value, 64); err == nil && 0 <= q && q <= 1 {
			return q
		}
	}
	return 1
}
