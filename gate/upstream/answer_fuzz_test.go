package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzAnswer holds the reader of answers against net/http: what both take for an
// answer they must read alike, and nothing may panic.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		ok("hello"),
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\nrest",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\nContent-Length: 1\n\na",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length : 0\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		br := bufio.NewReaderSize(bytes.NewReader(raw), 64<<10)
		var a answer
		if err := a.read(&input{Reader: br}, "POST"); err != nil {
			return
		}
		var b body
		b.begin(br, a.framing)
		body, err := io.ReadAll(&b)
		if err != nil {
			return
		}
		if a.status < 200 || a.status > 999 {
			t.Fatalf("status %d", a.status)
		}
		for _, field := range a.fields {
			if !ValidName(field.Name) || strings.ContainsAny(field.Value, "\r\n\x00") {
				t.Fatalf("field %q: %q", field.Name, field.Value)
			}
		}
		if strings.HasPrefix(string(raw), "HTTP/1.1 1") {
			return // net/http gives interim answers to its caller
		}
		other, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), &http.Request{Method: "POST"})
		if err != nil {
			return
		}
		otherBody, err := io.ReadAll(other.Body)
		if err != nil {
			return
		}
		if other.StatusCode != a.status || !bytes.Equal(otherBody, body) {
			t.Fatalf("read %d %q, net/http reads %d %q", a.status, body, other.StatusCode, otherBody)
		}
	})
}
