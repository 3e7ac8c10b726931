package edge

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// appendStatus begins an answer's head.
func appendStatus(b []byte, status int) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	return append(b, '\r', '\n')
}

// appendField adds a line. A value may come from the configuration; what would
// end the line in it becomes a blank (RFC 9110 section 5.5).
func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	start := len(b)
	b = append(b, value...)
	for i := start; i < len(b); i++ {
		if c := b[i]; c < ' ' && (c == '\r' || c == '\n' || c == 0) {
			b[i] = ' '
		}
	}
	return append(b, '\r', '\n')
}

func appendLength(b []byte, n int64) []byte {
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, n, 10)
	return append(b, '\r', '\n')
}

func appendDate(b []byte) []byte {
	b = append(b, "Date: "...)
	b = fasthttp.AppendHTTPDate(b, time.Now())
	return append(b, '\r', '\n')
}

// appendFields adds an answer's fields in order, but for those the gate has the
// say about: what belongs to the connection, framing and Gate-*. fasthttp knows one
// line only of some names; several mean the same as their list (RFC 9110 section
// 5.3).
func appendFields(b []byte, fields []rules.Field) []byte {
	for i, f := range fields {
		switch {
		case upstream.SameName(f.Name, "Content-Length"), upstream.HopByHop(f.Name),
			hasPrefixFolded(f.Name, "Gate-"), !upstream.ValidName(f.Name):
		case oneLine(f.Name):
			if fieldIndex(fields, f.Name) == i {
				b = appendField(b, f.Name, joined(fields, f.Name))
			}
		default:
			b = appendField(b, f.Name, f.Value)
		}
	}
	return b
}

// oneLine reports the names of which fasthttp keeps the last line.
func oneLine(name string) bool {
	return upstream.SameName(name, "Content-Type") || upstream.SameName(name, "Content-Encoding") ||
		upstream.SameName(name, "Server")
}

func fieldIndex(fields []rules.Field, name string) int {
	return slices.IndexFunc(fields, func(f rules.Field) bool { return upstream.SameName(f.Name, name) })
}

// joined is the list that several lines of a field are (RFC 9110 section 5.3).
func joined(fields []rules.Field, name string) string {
	var one [1]string // most have one line
	values := one[:0]
	for i := range fields {
		if upstream.SameName(fields[i].Name, name) {
			values = append(values, fields[i].Value)
		}
	}
	return strings.Join(values, ", ")
}

// appendOwnHead is the head of an answer that the gate makes itself.
func appendOwnHead(b []byte, a decision.Answer) []byte {
	b = appendStatus(b, a.Status)
	b = appendDate(b)
	b = appendFields(b, a.Header)
	return appendLength(b, int64(len(a.Body)))
}

// fieldValue is the first value of a field; "" without one.
func fieldValue(fields []rules.Field, name string) string {
	for _, f := range fields {
		if upstream.SameName(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// headText is memory to compose a head in, and a short body.
type headText struct {
	b    []byte
	body []byte
}

var headTexts = sync.Pool{New: func() any { return &headText{b: make([]byte, 0, 2<<10)} }}

// setHead makes the composed head the response's. Names keep their case, and fields
// their order and number. Each line is "name: value" and CR LF.
func (t *headText) setHead(h *fasthttp.ResponseHeader, status int) {
	h.DisableNormalizing()
	h.SetStatusCode(status)
	_, lines, _ := bytes.Cut(t.b, newline) // the status line
	for len(lines) > 0 {
		end, colon := bytes.IndexByte(lines, '\n'), bytes.IndexByte(lines, ':')
		name, value := lines[:colon], lines[colon+len(": "):end-len("\r")]
		lines = lines[end+1:]
		switch {
		case string(name) == "Content-Type": // what nearly every answer has, the short way
			h.SetContentTypeBytes(value)
		case string(name) == "Transfer-Encoding": // chunked; the gate's own
			h.SetContentLength(-1)
		case len(name) == len(date) && bytes.EqualFold(name, date):
			// fasthttp takes no Date but its own into a head. It takes one as a
			// trailer, and what is a trailer no more goes into the head.
			_ = h.SetTrailerBytes(name)
			h.AddBytesKV(name, value)
			_ = h.SetTrailerBytes(nil)
		default:
			h.AddBytesKV(name, value)
		}
	}
}

var (
	newline = []byte("\n")
	date    = []byte("Date")
)

func getHeadText() *headText { return headTexts.Get().(*headText) }

func (t *headText) free() {
	t.b = t.b[:0]
	headTexts.Put(t)
}

// withoutField leaves the fields as they are and returns them without one name.
func withoutField(fields []rules.Field, name string) []rules.Field {
	if fieldIndex(fields, name) < 0 {
		return fields
	}
	return slices.DeleteFunc(slices.Clone(fields), func(f rules.Field) bool { return upstream.SameName(f.Name, name) })
}
