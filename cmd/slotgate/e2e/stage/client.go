package stage

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Answer is a response with its body read.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error
}

func (a Answer) String() string {
	if a.Err != nil {
		return a.Err.Error()
	}
	return fmt.Sprintf("%d %s %v", a.Status, a.Body, a.Header)
}

// client neither follows redirects nor repeats requests.
var client = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       60 * time.Second,
}

// Send is one request; fields are "Name: value".
func Send(method, url, body string, fields ...string) Answer {
	// A reader of no known kind keeps net/http from repeating the request.
	req, err := http.NewRequest(method, url, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		return Answer{Err: err}
	}
	req.ContentLength = int64(len(body))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body = http.NoBody
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		req.Header.Add(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{Err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: b, Err: err}
}

// Book is a booking of a lesson through a gate, or straight at the backend.
func Book(base string, lesson int, student string, fields ...string) Answer {
	return Send("POST", fmt.Sprintf("%s/api/lessons/%d/bookings", base, lesson), fmt.Sprintf(`{"student_id":%q}`, student), fields...)
}

// Expect checks what came of a request.
func Expect(t testing.TB, a Answer, status int, decision, outcome string) {
	t.Helper()
	if a.Err != nil || a.Status != status || a.Header.Get("Gate-Decision") != decision || a.Header.Get("Gate-Outcome") != outcome {
		t.Fatalf("got %v, want %d %s %s", a, status, decision, outcome)
	}
}

// RawSend writes bytes to a gate and returns the first line it answers.
func RawSend(t testing.TB, base, text string) string {
	t.Helper()
	conn := Dial(t, strings.TrimPrefix(base, "http://"))
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return line
}

// Dial connects for 10 s at most.
func Dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}
