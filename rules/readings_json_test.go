package rules

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/unicode"
)

// jsonReader is how a backend reads a JSON body.
type jsonReader struct {
	needsLabel, folds bool                                 // in names: letter case
	bom               bool                                 // is skipped
	comments          bool                                 // are skipped, as by the json gem
	wide              func(label string, body []byte) bool // it is UTF-16
}

var comment = regexp.MustCompile(`(?s)/\*.*?\*/`)

// slot is the member slot_id.
func (j jsonReader) slot(body []byte, label string) (any, bool) {
	if j.needsLabel && !strings.Contains(strings.ToLower(label), "json") {
		return nil, false
	}
	if j.wide != nil && j.wide(label, body) {
		text, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Bytes(body)
		if err != nil {
			return nil, false
		}
		body = text
	}
	if j.bom {
		body = bytes.TrimPrefix(body, []byte("\ufeff"))
	}
	if j.comments {
		body = comment.ReplaceAll(body, nil)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v map[string]any
	if d.Decode(&v) != nil || d.More() {
		return nil, false
	}
	slot, ok := v["slot_id"]
	if j.folds {
		for name, value := range v {
			if strings.EqualFold(name, "slot_id") && (name != "slot_id" || !ok) {
				slot, ok = value, true
			}
		}
	}
	return slot, ok
}

// labelledWide: body-parser goes by the charset in the label.
func labelledWide(label string, _ []byte) bool {
	return strings.Contains(strings.ToLower(label), "utf-16")
}

// looksWide: Jackson looks at the first bytes.
func looksWide(_ string, body []byte) bool {
	return len(body) > 1 && (body[0] == 0xff && body[1] == 0xfe || body[0] != 0 && body[1] == 0)
}

// jsonText is what a handler has in a string context; a number that is no integer of
// 64 bits is a double to all that were measured.
func jsonText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return strings.Replace(v.String(), "-0", "0", 1)
		}
		f, err := v.Float64()
		if err != nil {
			return "not a number: " + v.String()
		}
		if f == math.Trunc(f) {
			return strconv.FormatFloat(f, 'f', 0, 64)
		}
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	text, _ := json.Marshal(v)
	return "not a text: " + string(text)
}

// decodeMember reads one member of a JSON body.
func decodeMember(body []byte, name string) (any, bool) {
	var v map[string]any
	if json.Unmarshal(bytes.TrimPrefix(body, []byte("\ufeff")), &v) != nil {
		return nil, false
	}
	value, ok := v[name]
	return value, ok
}
