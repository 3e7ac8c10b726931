package accesslog

import (
	"net/netip"
	"strconv"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Entry is what is told of one request. Texts may hold any byte: they are escaped, and
// cut where they are long. It must hold nothing that a log may not show: no query, no
// header field but those named here, no body.
type Entry struct {
	Began  time.Time
	Took   time.Duration // to the last byte of the answer
	Client netip.Addr    // invalid: a unix socket
	// Method, Path and Protocol are "" where the head was not understood.
	Method, Path, Protocol string
	Status                 int   // 499: the client went away before there was an answer
	Bytes                  int64 // of the answer's body
	Referer, UserAgent     string

	// In JSON only, and left out where empty.
	RequestID                     string
	Rule, Decision, Mode, Outcome string
	Shadow                        string // what enforce would have decided, in shadow
	Refusal                       string // the edge's word for why no rule saw the request
}

// Format is how entries are written, each on one line.
type Format uint8

const (
	// Combined is Apache's "combined" and nginx's: client, time, request line, status,
	// bytes, Referer and User-Agent. Bytes that are no visible ASCII, quotes and
	// backslashes are \xHH, as nginx writes them.
	Combined Format = iota
	// JSON is an object a line (RFC 8259). What is not printable is \uXXXX.
	JSON
)

const (
	maxPath = 2 << 10 // bytes; longer ones are cut and end in "..."
	maxText = 256
)

// appendTo writes the entry as a line, with its end.
func (e *Entry) appendTo(b []byte, f Format) []byte {
	if f == JSON {
		return e.appendJSON(b)
	}
	return e.appendCombined(b)
}

func (e *Entry) appendCombined(b []byte) []byte {
	b = e.appendClient(b)
	b = append(b, " - - ["...)
	b = e.Began.AppendFormat(b, "02/Jan/2006:15:04:05 -0700")
	b = append(b, `] "`...)
	if e.Path == "" {
		b = append(b, '-')
	} else {
		b = appendVisible(b, e.Method, maxText)
		b = append(b, ' ')
		b = appendVisible(b, e.Path, maxPath)
		b = append(b, ' ')
		b = appendVisible(b, e.Protocol, maxText)
	}
	b = append(b, `" `...)
	b = strconv.AppendInt(b, int64(e.Status), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, e.Bytes, 10)
	for _, text := range [...]string{e.Referer, e.UserAgent} {
		b = append(b, ` "`...)
		if text == "" {
			b = append(b, '-')
		}
		b = appendVisible(b, text, maxText)
		b = append(b, '"')
	}
	return append(b, '\n')
}

func (e *Entry) appendClient(b []byte) []byte {
	if !e.Client.IsValid() {
		return append(b, '-')
	}
	return e.Client.AppendTo(b)
}

func appendVisible(b []byte, text string, limit int) []byte {
	const hex = "0123456789ABCDEF"
	cut := len(text) > limit
	if cut {
		text = text[:limit]
	}
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	if cut {
		b = append(b, "..."...)
	}
	return b
}

func (e *Entry) appendJSON(b []byte) []byte {
	b = append(b, `{"time":"`...)
	b = e.Began.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, `","client":"`...)
	b = e.appendClient(b)
	b = append(b, '"')
	b = appendMember(b, "method", e.Method, maxText)
	b = appendMember(b, "path", e.Path, maxPath)
	b = appendMember(b, "protocol", e.Protocol, maxText)
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(e.Status), 10)
	b = append(b, `,"bytes":`...)
	b = strconv.AppendInt(b, e.Bytes, 10)
	b = append(b, `,"seconds":`...)
	b = strconv.AppendFloat(b, e.Took.Seconds(), 'f', 6, 64)
	b = appendMember(b, "rule", e.Rule, maxText)
	b = appendMember(b, "decision", e.Decision, maxText)
	b = appendMember(b, "mode", e.Mode, maxText)
	b = appendMember(b, "outcome", e.Outcome, maxText)
	b = appendMember(b, "shadow", e.Shadow, maxText)
	b = appendMember(b, "refusal", e.Refusal, maxText)
	b = appendMember(b, "request_id", e.RequestID, maxText)
	b = appendMember(b, "referer", e.Referer, maxText)
	b = appendMember(b, "user_agent", e.UserAgent, maxText)
	return append(b, '}', '\n')
}

// appendMember adds a member, or nothing where the value is empty.
func appendMember(b []byte, name, value string, limit int) []byte {
	if value == "" {
		return b
	}
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, `":"`...)
	b = appendPrintable(b, value, limit)
	return append(b, '"')
}

func appendPrintable(b []byte, text string, limit int) []byte {
	cut := len(text) > limit
	if cut {
		text = text[:limit]
	}
	for _, r := range text { // what is no UTF-8 comes as U+FFFD
		switch {
		case r == '"', r == '\\':
			b = append(b, '\\', byte(r))
		case unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = appendUnit(appendUnit(b, high), low)
		default:
			b = appendUnit(b, r)
		}
	}
	if cut {
		b = append(b, "..."...)
	}
	return b
}

func appendUnit(b []byte, unit rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[unit>>12&15], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
}
