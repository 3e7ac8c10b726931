package token

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// client speaks to the gate over one connection at a time.
type client struct {
	t       *testing.T
	address string
	rand    *rand.Rand

	conn net.Conn // nil: none
	in   *bufio.Reader
}

func (c *client) write(text string) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			c.t.Error(err)
			return
		}
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	_, _ = io.WriteString(c.conn, text)
}

func (c *client) shut() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// goAway reads a part of what comes, or nothing.
func (c *client) goAway() {
	if c.conn != nil {
		_ = c.conn.SetReadDeadline(time.Now().Add(time.Duration(c.rand.IntN(20)) * time.Millisecond))
		_, _ = io.CopyN(io.Discard, c.in, int64(c.rand.IntN(3000)))
	}
	c.shut()
}

// read reads an answer, which is to hold no other token, and reports whether the connection
// goes on.
func (c *client) read(method, token string) bool {
	if c.conn == nil {
		return false
	}
	answer, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		c.shut()
		return false
	}
	var text strings.Builder
	fmt.Fprintln(&text, answer.Status)
	_ = answer.Header.Write(&text)
	var to io.Writer = &text
	if c.rand.IntN(10) == 0 {
		to = slowly{to}
	}
	_, err = io.Copy(to, answer.Body)
	_ = answer.Trailer.Write(&text)
	only(c.t, "the answer", token, text.String())
	if answer.StatusCode < 400 && answer.Header.Get("X-Token") == "" && answer.Header.Get("Gate-Decision") == "" {
		c.t.Errorf("the answer to %s is nobody's: %.600s", token, text.String())
	}
	if answer.StatusCode == http.StatusInternalServerError {
		c.t.Errorf("500 to %s", token)
	}
	if err != nil || answer.Close {
		c.shut()
		return false
	}
	return true
}

type slowly struct{ io.Writer }

func (s slowly) Write(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return s.Writer.Write(p)
}

// head is that of a request that says everywhere whose it is, without its empty line.
func (c *client) head(method, token, path, manner string, more ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s?m=%s&q=%s HTTP/1.1\r\nHost: %[4]s.test\r\nX-Request-Id: id-%[4]s\r\nUser-Agent: ua-%[4]s\r\nReferer: http://a/%[4]s\r\n"+
		"Cookie: sid=%[4]s\r\nConnection: keep-alive, X-Hop\r\nX-Hop: %[4]s\r\nAuthorization: Bearer %[4]s\r\n",
		method, path, strings.ReplaceAll(manner, " ", "+"), token)
	for i := range c.rand.IntN(25) {
		fmt.Fprintf(&b, "X-F%d: %s\r\n", i, token)
	}
	for _, field := range more {
		b.WriteString(field + "\r\n")
	}
	return b.String()
}

func withBody(head, body string) string {
	return head + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

func (c *client) inChunks(head, token string) string {
	var b strings.Builder
	b.WriteString(head + "Transfer-Encoding: chunked\r\nTrailer: X-Last\r\n\r\n")
	for range 1 + c.rand.IntN(6) {
		part := filler(token, c.rand.IntN(12<<10))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
	}
	b.WriteString("0\r\nX-Last: " + token + "\r\n\r\n")
	return b.String()
}

// booking is a request of about so many bytes.
func (c *client) booking(token, path, manner string, size int) string {
	head := c.head("POST", token, path, manner, "Content-Type: application/json", "Idempotency-Key: key-of-a-good-length-"+token)
	return withBody(head, student(token, size))
}

func student(token string, size int) string {
	return `{"student_id":"` + token + `","pad":"` + filler(token, size) + `"}`
}
