package storm

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Success says which answers count as a booking made: those whose status is in
// one of the ranges and whose JSON body holds all of the values. The zero value
// is any 2xx.
type Success struct {
	statuses []statusRange
	values   []jsonValue
}

type statusRange struct{ low, high int }

// jsonValue is a place in a JSON document (RFC 6901, already split and
// unescaped) and the text that must stand there.
type jsonValue struct {
	pointer []string
	want    string
}

// ParseSuccess reads conditions. Each is a list of statuses (200), classes
// (2xx) and ranges (200-204), parted by commas, optionally ending in one
// json:/pointer=value, which runs to the end of the text. Statuses of all
// conditions are alternatives; every JSON value must hold too. A JSON string
// is compared by its content; a number, true, false or null as written.
func ParseSuccess(conditions ...string) (Success, error) {
	var s Success
	for _, condition := range conditions {
		if err := s.parse(condition); err != nil {
			return Success{}, fmt.Errorf("success condition %q: %w", condition, err)
		}
	}
	return s, nil
}

// String is the condition in the words of ParseSuccess.
func (s Success) String() string {
	var items []string
	for _, r := range s.statuses {
		items = append(items, r.String())
	}
	text := strings.Join(items, ",")
	if text == "" {
		text = "2xx"
	}
	for _, v := range s.values {
		text += " and json:"
		for _, segment := range v.pointer {
			text += "/" + escapePointer.Replace(segment)
		}
		text += "=" + v.want
	}
	return text
}

func (r statusRange) String() string {
	switch {
	case r.low == r.high:
		return strconv.Itoa(r.low)
	case r.low%100 == 0 && r.high == r.low+99:
		return strconv.Itoa(r.low/100) + "xx"
	}
	return fmt.Sprintf("%d-%d", r.low, r.high)
}

func (s *Success) parse(condition string) error {
	for rest, more := condition, true; more; {
		if strings.HasPrefix(rest, "json:") {
			value, err := parseJSONValue(rest)
			if err != nil {
				return err
			}
			s.values = append(s.values, value)
			return nil
		}
		var item string
		item, rest, more = strings.Cut(rest, ",")
		r, err := parseStatusRange(item)
		if err != nil {
			return err
		}
		s.statuses = append(s.statuses, r)
	}
	return nil
}

func parseStatusRange(item string) (statusRange, error) {
	if len(item) == 3 && item[0] >= '1' && item[0] <= '5' && strings.EqualFold(item[1:], "xx") {
		low := int(item[0]-'0') * 100
		return statusRange{low, low + 99}, nil
	}
	first, last, isRange := strings.Cut(item, "-")
	low, err := parseStatus(first)
	if err != nil || !isRange {
		return statusRange{low, low}, err
	}
	high, err := parseStatus(last)
	if err == nil && high < low {
		err = fmt.Errorf("range %q ends before it begins", item)
	}
	return statusRange{low, high}, err
}

func parseStatus(text string) (int, error) {
	status, err := strconv.Atoi(text)
	if err != nil || len(text) != 3 || status < 100 || status > 599 {
		return 0, fmt.Errorf("%q is no status: write 201, 2xx, 200-204 or json:/pointer=value", text)
	}
	return status, nil
}

func parseJSONValue(text string) (jsonValue, error) {
	pointer, want, found := strings.Cut(strings.TrimPrefix(text, "json:"), "=")
	switch {
	case !found:
		return jsonValue{}, fmt.Errorf("%q has no value: write json:/pointer=value", text)
	case pointer == "":
		return jsonValue{want: want}, nil
	case pointer[0] != '/':
		return jsonValue{}, fmt.Errorf("pointer %q must begin with / (RFC 6901)", pointer)
	}
	v := jsonValue{want: want}
	for _, segment := range strings.Split(pointer[1:], "/") {
		for i := strings.IndexByte(segment, '~'); i >= 0 && i < len(segment); i++ {
			if segment[i] == '~' && (i+1 == len(segment) || segment[i+1] != '0' && segment[i+1] != '1') {
				return jsonValue{}, fmt.Errorf("pointer %q: ~ must be written ~0 and / inside a name ~1 (RFC 6901)", pointer)
			}
		}
		v.pointer = append(v.pointer, unescapePointer.Replace(segment))
	}
	return v, nil
}

var (
	unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")
	escapePointer   = strings.NewReplacer("~", "~0", "/", "~1")
)

// Matches reports whether an answer is a success.
func (s Success) Matches(status int, body []byte) bool {
	if !s.matchesStatus(status) {
		return false
	}
	for _, v := range s.values {
		if !v.in(body) {
			return false
		}
	}
	return true
}

func (s Success) matchesStatus(status int) bool {
	if len(s.statuses) == 0 {
		return status >= 200 && status <= 299
	}
	for _, r := range s.statuses {
		if r.low <= status && status <= r.high {
			return true
		}
	}
	return false
}

// in walks the document down the pointer and skips everything beside it, so
// that a long answer costs no allocation. Text that is no JSON matches nothing.
func (v jsonValue) in(body []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	for _, segment := range v.pointer {
		var found bool
		switch d.PeekKind() {
		case '{':
			found = enterMember(d, segment)
		case '[':
			found = enterElement(d, segment)
		}
		if !found {
			return false
		}
	}
	token, err := d.ReadToken()
	if err != nil {
		return false
	}
	switch token.Kind() {
	case '{', '[':
		return false
	default:
		return token.String() == v.want
	}
}

// enterMember leaves d before the value of the named member.
func enterMember(d *jsontext.Decoder, name string) bool {
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return false
		}
		if token.String() == name {
			return true
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}

// enterElement leaves d before the array element with that index.
func enterElement(d *jsontext.Decoder, index string) bool {
	i, err := strconv.ParseUint(index, 10, 31)
	if err != nil || strconv.FormatUint(i, 10) != index {
		return false
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for ; i > 0; i-- {
		if d.PeekKind() == ']' || d.SkipValue() != nil {
			return false
		}
	}
	return d.PeekKind() != ']'
}
