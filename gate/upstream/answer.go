package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/slotgate/slotgate/rules"
)

// maxInterim bounds the 1xx answers before the final one.
const maxInterim = 16

// answer is the head of a final answer and how its body ends.
type answer struct {
	status  int
	fields  []rules.Field // as sent, hop-by-hop fields included
	framing int64
	// closes: the connection ends with this answer.
	closes bool
	room   [12]rules.Field // of fields, where they fit
	texts  *rules.Texts    // make the fields' texts; nil: each head has memory of its own
}

// read reads up to the end of the final answer's head. method is that of the
// request. Errors of the connection are returned as they are; every other error
// means that what came is no answer to this request.
func (a *answer) read(in *input, method string) error {
	return a.readFinal(in, method, false)
}

// readFinal takes 101 for a final answer where the request asked for it.
func (a *answer) readFinal(in *input, method string, upgrade bool) error {
	for range maxInterim {
		if err := a.readHead(in); err != nil {
			return err
		}
		switch {
		case a.status >= 200:
			return a.frame(method)
		case a.status == 101 && upgrade:
			return nil
		case a.status == 100, a.status == 102, a.status == 103:
			// Nothing to do with the result, and the client did not ask.
		default:
			return fmt.Errorf("the backend sent status %d, which nobody asked for", a.status)
		}
	}
	return fmt.Errorf("the backend sent more than %d interim answers", maxInterim)
}

// readHead reads one status line with its fields. A bare LF ends a line too (RFC
// 9112 section 2.2): what is read here is never copied on as bytes.
func (a *answer) readHead(in *input) error {
	raw, err := headBytes(in)
	if err != nil {
		return err
	}
	text := a.texts.Of(raw)
	_, _ = in.Discard(len(raw))

	line, rest := cutLine(text)
	http10, ok := a.parseStatus(line)
	if !ok {
		// It goes into the log, and what was read may be anybody's body or cookie.
		return fmt.Errorf("the backend's answer begins with %d bytes that are no HTTP/1.1 status line", len(line))
	}
	if strings.IndexByte(rest, 0) >= 0 {
		return errors.New("a header line of the backend's answer holds a NUL")
	}
	a.fields = a.room[:0]
	for rest != "" {
		line, rest = cutLine(rest)
		if line == "" {
			break
		}
		if err := a.parseField(line); err != nil {
			return err
		}
	}
	a.closes = http10
	for _, option := range connectionOptions(a.fields) {
		switch {
		case strings.EqualFold(option, "close"):
			a.closes = true
			return nil
		case strings.EqualFold(option, "keep-alive"):
			a.closes = false
		}
	}
	if http10 {
		for _, f := range a.fields {
			if SameName(f.Name, "Transfer-Encoding") {
				return errors.New("the backend sent Transfer-Encoding in an HTTP/1.0 answer")
			}
		}
	}
	return nil
}

// headBytes waits until the whole head is in the buffer. The bytes are valid until
// the next read.
func headBytes(in *input) ([]byte, error) {
	searched := 0
	for {
		b, _ := in.Peek(in.Buffered())
		for i := searched; ; {
			n := bytes.IndexByte(b[i:], '\n')
			if n < 0 {
				break
			}
			i += n + 1
			if tail := b[i:]; bytes.HasPrefix(tail, []byte("\n")) {
				return b[:i+1], nil
			} else if bytes.HasPrefix(tail, []byte("\r\n")) {
				return b[:i+2], nil
			}
		}
		searched = max(0, len(b)-3)
		switch _, err := in.Peek(len(b) + 1); {
		case errors.Is(err, bufio.ErrBufferFull):
			if !in.lengthen() {
				return nil, fmt.Errorf("the head of the backend's answer is longer than %d bytes", in.Size())
			}
		case err != nil:
			return nil, err
		}
	}
}

// cutLine cuts off the line that s, which ends in LF, begins with.
func cutLine(s string) (line, rest string) {
	end := strings.IndexByte(s, '\n')
	line, rest = s[:end], s[end+1:]
	if end > 0 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	return line, rest
}

// parseStatus reads "HTTP/1.1 200 OK"; the reason has no meaning and is dropped.
func (a *answer) parseStatus(line string) (http10, ok bool) {
	const example = "HTTP/1.1 200"
	if len(line) < len(example) || !strings.HasPrefix(line, "HTTP/1.") || line[8] != ' ' ||
		len(line) > len(example) && line[len(example)] != ' ' {
		return false, false
	}
	status := 0
	for _, digit := range line[9:12] {
		if digit < '0' || digit > '9' {
			return false, false
		}
		status = status*10 + int(digit-'0')
	}
	a.status = status
	minor := line[7]
	return minor == '0', minor >= '0' && minor <= '9' && a.status >= 100
}

func (a *answer) parseField(line string) error {
	if strings.IndexByte(line, '\r') >= 0 {
		return errors.New("a header line of the backend's answer holds a CR")
	}
	if line[0] == ' ' || line[0] == '\t' {
		// obs-fold: one blank stands for the break (RFC 9112 section 5.2).
		if len(a.fields) == 0 {
			return errors.New("the backend's answer begins with a continued header line")
		}
		last := &a.fields[len(a.fields)-1]
		last.Value = strings.Trim(last.Value+" "+strings.Trim(line, " \t"), " ")
		return nil
	}
	name, rest := CutToken(line)
	// A blank before the colon is removed from answers (RFC 9112 section 5.1).
	rest = TrimBlanks(rest)
	if name == "" || rest == "" || rest[0] != ':' {
		return fmt.Errorf("header line %d of the backend's answer has no valid name", len(a.fields)+1)
	}
	a.fields = append(a.fields, rules.Field{Name: name, Value: TrimBlanks(rest[1:])})
	return nil
}

// frame finds out how the body ends (RFC 9112 section 6.3).
func (a *answer) frame(method string) error {
	var length, coding string
	lengths, codings := 0, 0
	for _, f := range a.fields {
		switch {
		case SameName(f.Name, "Content-Length"):
			length = f.Value
			lengths++
		case SameName(f.Name, "Transfer-Encoding"):
			coding = f.Value
			codings++
		}
	}
	switch {
	case codings > 0 && lengths > 0:
		return errors.New("the backend's answer has both Content-Length and Transfer-Encoding")
	case codings > 1 || lengths > 1:
		return errors.New("the backend's answer repeats its framing header")
	case codings == 1 && !strings.EqualFold(coding, "chunked"):
		return fmt.Errorf("the backend's answer has Transfer-Encoding %.40q; only chunked is known", coding)
	}
	a.framing = untilClose
	if codings == 1 {
		a.framing = chunked
	}
	if lengths == 1 {
		var ok bool
		if a.framing, ok = ParseLength(length); !ok {
			return fmt.Errorf("the backend's answer has Content-Length %.40q", length)
		}
	}
	if method == "HEAD" || a.status == 204 || a.status == 304 {
		// A backend that announces a body may be so wrong as to send it, later than
		// the next request on this connection would be answered.
		a.closes = a.closes || a.framing > 0 || a.framing == chunked
		a.framing = noBody
	}
	if a.framing == untilClose {
		a.closes = true
	}
	return nil
}
