package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/slotgate/slotgate/rules"
)

// Trailing is a body in chunks with fields behind it (RFC 9110 section 6.5).
type Trailing interface {
	io.Reader
	// Announced lists the names that the head's Trailer field gave.
	Announced() []string
	// Trailers are the announced fields that came; nil before the body's io.EOF.
	Trailers() []rules.Field
}

// TrailerNames lists what the Trailer fields announce and a proxy may hand on.
// Fields that came unannounced are dropped: some servers merge trailers into the
// head, where they would be read as what this gate has checked.
func TrailerNames(fields []rules.Field) []string {
	var names []string
	for _, f := range fields {
		if !strings.EqualFold(f.Name, "Trailer") {
			continue
		}
		for name := range strings.SplitSeq(f.Value, ",") {
			if name = strings.Trim(name, " \t"); mayTrail(name) && !containsFold(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// mayTrail excludes framing, routing, request modifiers, authentication and what
// tells how to read the content (RFC 9110 section 6.5.1), and what only the gate
// may say.
func mayTrail(name string) bool {
	if !ValidName(name) || HopByHop(name) {
		return false
	}
	folded := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	for _, prefix := range []string{"content-", "if-", "gate-", "x-forwarded-", "x-http-method", "access-control-"} {
		if strings.HasPrefix(folded, prefix) {
			return false
		}
	}
	switch folded {
	case "host", "authorization", "cookie", "set-cookie", "www-authenticate", "cache-control", "max-forwards",
		"range", "age", "date", "expires", "location", "retry-after", "vary", "warning", "via", "forwarded",
		"x-request-id", "x-method-override", "idempotency-key":
		return false
	}
	return true
}

// maxTrailers bounds the lines after the last chunk.
const maxTrailers = 64

// readTrailers reads the lines after the last chunk and keeps the announced.
func readTrailers(br *bufio.Reader, announced []string) ([]rules.Field, error) {
	var kept []rules.Field
	for range maxTrailers {
		line, err := br.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("a trailer of the backend's answer is longer than %d bytes", br.Size())
		case err != nil:
			return nil, err
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if text == "" {
			return kept, nil
		}
		name, value, _ := strings.Cut(text, ":")
		if containsFold(announced, name) && !strings.ContainsAny(value, "\r\x00") {
			kept = append(kept, rules.Field{Name: name, Value: strings.Trim(value, " \t")})
		}
	}
	return nil, fmt.Errorf("the backend's answer has more than %d trailers", maxTrailers)
}

// appendTrailers ends a body in chunks.
func appendTrailers(b []byte, body io.Reader) []byte {
	b = append(b, "0\r\n"...)
	if t, ok := body.(Trailing); ok {
		for _, f := range t.Trailers() {
			b = appendField(b, f.Name, f.Value)
		}
	}
	return append(b, '\r', '\n')
}
