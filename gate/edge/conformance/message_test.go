package conformance

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

// message is a request or an answer as it stood on the wire: nothing is refused,
// normalized or repaired that can be kept.
type message struct {
	line     string
	fields   []field
	body     string
	trailers []field
	cut      bool // the connection ended, or the framing broke, before the end
}

type field struct{ name, value string }

// readHead reads up to the empty line. With an error comes what there was of the
// head: no line means nothing.
func readHead(in *bufio.Reader) (*message, error) {
	m := &message{}
	for {
		line, err := readLine(in)
		switch {
		case err != nil:
			if m.line != "" || line != "" {
				m.line, m.cut = m.line+line, true
			}
			return m, err
		case m.line == "":
			m.line = line // empty lines before the message are passed over
		case line == "":
			return m, nil
		default:
			m.fields = appendLine(m.fields, line)
		}
	}
}

// readLine returns a line without its end, which a bare LF is too.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), err
}

// appendLine keeps a folded line in the value that it continues.
func appendLine(fields []field, line string) []field {
	if n := len(fields); n > 0 && (line[0] == ' ' || line[0] == '\t') {
		fields[n-1].value += "\r\n" + line
		return fields
	}
	name, value, _ := strings.Cut(line, ":")
	return append(fields, field{name, strings.Trim(value, " \t")})
}

// readBody frames as RFC 9112 section 6.3 does where it gives a reading, and else
// reads no body; untilEnd takes what follows an answer without framing.
func (m *message) readBody(in *bufio.Reader, untilEnd bool) {
	coding, length := m.values("Transfer-Encoding"), m.values("Content-Length")
	switch {
	case len(coding) > 0 && strings.HasSuffix(strings.ToLower(coding[len(coding)-1]), "chunked"):
		m.readChunks(in)
	case len(length) > 0 && isNumber(length[0]):
		n, err := strconv.ParseInt(length[0], 10, 32)
		if err != nil {
			m.cut = true
			return
		}
		b, err := io.ReadAll(io.LimitReader(in, n))
		m.body, m.cut = string(b), err != nil || int64(len(b)) < n
	case untilEnd:
		b, err := io.ReadAll(in)
		m.body, m.cut = string(b), err != nil
	}
}

func (m *message) readChunks(in *bufio.Reader) {
	for {
		line, err := readLine(in)
		size, _, _ := strings.Cut(line, ";")
		n, parseErr := strconv.ParseUint(strings.TrimRight(size, " \t"), 16, 31)
		if err != nil || parseErr != nil {
			m.cut = true
			return
		}
		if n == 0 {
			break
		}
		b, err := io.ReadAll(io.LimitReader(in, int64(n)))
		m.body += string(b)
		if end, lineErr := readLine(in); err != nil || lineErr != nil || end != "" {
			m.cut = true
			return
		}
	}
	for {
		line, err := readLine(in)
		if err != nil {
			m.cut = true
			return
		}
		if line == "" {
			return
		}
		m.trailers = appendLine(m.trailers, line)
	}
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// values lists the values of a field.
func (m *message) values(name string) (values []string) {
	for _, f := range m.fields {
		if strings.EqualFold(f.name, name) {
			values = append(values, f.value)
		}
	}
	return values
}

// method and target of a request's line.
func (m *message) method() string { return word(m.line, 0) }
func (m *message) target() string { return word(m.line, 1) }

// status of an answer; 0: its line is none.
func (m *message) status() int {
	status, err := strconv.Atoi(word(m.line, 1))
	if err != nil || !strings.HasPrefix(m.line, "HTTP/1.") {
		return 0
	}
	return status
}

func word(line string, i int) string {
	words := strings.Split(line, " ")
	if i >= len(words) {
		return ""
	}
	return words[i]
}

// readRequests reads text as the requests of one connection, up to what is none.
func readRequests(text string) (requests []*message) {
	in := newReader(text)
	for {
		m, err := readHead(in)
		if err != nil || !strings.Contains(m.line, " ") {
			return requests
		}
		m.readBody(in, false)
		requests = append(requests, m)
	}
}

// readAnswers reads the answers to requests of the given methods until the
// connection ends, and reports whether it did before the deadline. seen is told of
// each as it is complete, switched when another protocol begins.
func readAnswers(in *bufio.Reader, methods []string, seen func(*message), switched func()) (ended bool) {
	final := 0
	for {
		m, err := readHead(in)
		if err != nil {
			if m.line != "" {
				seen(m)
			}
			return !isTimeout(err)
		}
		status := m.status()
		method := "GET"
		if final < len(methods) {
			method = methods[final]
		}
		switch {
		case status == 101:
			switched()
			m.readBody(in, true)
		case status >= 100 && status < 200:
			seen(m)
			continue
		case method != "HEAD" && status != 204 && status != 304:
			m.readBody(in, true)
		}
		final++
		seen(m)
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func newReader(text string) *bufio.Reader { return bufio.NewReader(strings.NewReader(text)) }
