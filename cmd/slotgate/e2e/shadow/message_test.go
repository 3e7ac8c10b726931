package shadow

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"
	"time"
)

// exchange sends raw bytes and returns all that comes until the connection ends.
func exchange(t *testing.T, base, text string) []byte {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	go func() { _, _ = io.WriteString(conn, text) }() // an answer may come before all of it is read
	raw, err := io.ReadAll(conn)
	if len(raw) == 0 {
		t.Fatalf("no answer to %.200q: %v", text, err)
	}
	return raw
}

// message is an answer in parts.
type message struct {
	head    []string // the status line and the fields, but Gate-*
	gate    []string // the names of Gate-* fields
	payload []byte   // out of its chunks
	tail    string   // trailers
	raw     []byte   // the body as it came
}

// split takes an answer apart, and 1xx answers before it away.
func split(t *testing.T, raw []byte) (m message) {
	t.Helper()
	var head []byte
	for {
		var found bool
		if head, m.raw, found = bytes.Cut(raw, []byte("\r\n\r\n")); !found {
			t.Fatalf("no head in %.300q", raw)
		}
		if !bytes.HasPrefix(head, []byte("HTTP/1.1 1")) {
			break
		}
		raw = m.raw
	}
	chunked := false
	for line := range strings.SplitSeq(string(head), "\r\n") {
		name, _, _ := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(name, "Gate-"):
			m.gate = append(m.gate, line)
			continue
		case strings.EqualFold(line, "Transfer-Encoding: chunked"):
			chunked = true
		}
		m.head = append(m.head, line)
	}
	m.payload = m.raw
	if chunked && len(m.raw) > 0 {
		reader := bufio.NewReader(bytes.NewReader(m.raw))
		payload, err := io.ReadAll(httputil.NewChunkedReader(reader))
		if err != nil {
			t.Fatalf("broken chunks: %v in %.300q", err, raw)
		}
		tail, _ := io.ReadAll(reader)
		m.payload, m.tail = payload, string(tail)
	}
	return m
}

// endToEnd is the head without what belongs to one connection, in no order: a proxy
// frames an answer itself and puts the framing last, also where no body
// comes with it.
func (m *message) endToEnd() []string {
	kept := slices.DeleteFunc(slices.Clone(m.head), func(line string) bool {
		name, _, _ := strings.Cut(line, ":")
		return strings.EqualFold(name, "Connection") || strings.EqualFold(name, "Keep-Alive")
	})
	if len(m.raw) == 0 {
		kept = slices.DeleteFunc(kept, func(line string) bool {
			return line == "Transfer-Encoding: chunked" || strings.HasPrefix(line, "Trailer: ")
		})
	}
	kept[0] = strings.TrimPrefix(strings.TrimPrefix(kept[0], "HTTP/1.1"), "HTTP/1.0")
	slices.Sort(kept)
	return kept
}

func undated(head []string) []string {
	return slices.DeleteFunc(head, func(line string) bool { return strings.HasPrefix(line, "Date: ") })
}

// would is what Gate-Shadow says.
func (m *message) would() string {
	for _, line := range m.gate {
		if value, found := strings.CutPrefix(line, "Gate-Shadow: "); found {
			return value
		}
	}
	return "none"
}
