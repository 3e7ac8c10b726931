package upstream

import (
	"strconv"
	"strings"

	"github.com/slotgate/slotgate/gate"
)

// Framing of a message body; a number from 0 on is its length in bytes.
const (
	noBody     int64 = -1
	chunked    int64 = -2
	untilClose int64 = -3
)

// appendHead writes the head of a request: every end-to-end field as it was sent,
// in order and repeated as often, with the true Content-Length in the place of
// the one that was sent. It is HTTP/1.1 whatever the client spoke, and says
// nothing about the connection, which is therefore kept. trailers are announced
// where the body is sent in chunks.
func appendHead(b []byte, r *gate.Request, authority string, length int64, trailers ...string) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	if r.Target != "" {
		b = append(b, r.Target...)
	} else {
		b = append(b, r.Path...)
		if r.Query != "" {
			b = append(b, '?')
			b = append(b, r.Query...)
		}
	}
	b = append(b, " HTTP/1.1\r\n"...)

	hasHost, hasLength, hasID := false, false, false
	for _, f := range r.Header {
		switch {
		case SameName(f.Name, "Host"):
			hasHost = true
		case SameName(f.Name, "X-Request-Id"):
			hasID = true
		}
	}
	if !hasHost {
		if r.Host != "" {
			authority = r.Host
		}
		b = appendField(b, "Host", authority)
	}
	named := connectionOptions(r.Header)
	for _, f := range r.Header {
		switch {
		case SameName(f.Name, "Content-Length"):
			if length >= 0 && !hasLength {
				hasLength = true
				b = appendLength(b, f.Name, length)
			}
		case !HopByHop(f.Name) && !containsFold(named, f.Name):
			b = appendField(b, f.Name, f.Value)
		}
	}
	switch {
	case length == chunked:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
		if len(trailers) > 0 {
			b = appendField(b, "Trailer", strings.Join(trailers, ", "))
		}
	case !hasLength && (length > 0 || length == 0 && wantsLength(r.Method)):
		b = appendLength(b, "Content-Length", length)
	}
	if !hasID && r.ID != "" {
		b = appendField(b, "X-Request-Id", r.ID)
	}
	return append(b, '\r', '\n')
}

// wantsLength reports the methods whose empty body is announced too (RFC 9110
// section 8.6).
func wantsLength(method string) bool {
	return method == "POST" || method == "PUT" || method == "PATCH"
}

func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, '\r', '\n')
}

func appendLength(b []byte, name string, n int64) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	b = strconv.AppendInt(b, n, 10)
	return append(b, '\r', '\n')
}
