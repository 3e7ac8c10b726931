package testbed

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// call is one connection of a client to a BackendProxy.
type call struct {
	proxy  *BackendProxy
	client net.Conn
	reader *bufio.Reader
}

const (
	busyAnswer  = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
	errorAnswer = "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\ninjected: 500"
	strayAnswer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 15\r\n\r\ninjected: stray"
	garbage     = "\x16\x03\x01\x00injected: no HTTP\x00\r\n\r\n"
)

func (c *call) sever() { c.client.Close() }

func (c *call) run() {
	defer c.client.Close()
	c.reader = bufio.NewReader(c.client)
	for {
		request, err := http.ReadRequest(c.reader)
		if err != nil {
			return // its end, or no HTTP: nothing a fault proxy need explain
		}
		if !c.serve(request) || request.Close {
			return
		}
	}
}

// serve answers one request and tells whether the connection goes on.
func (c *call) serve(request *http.Request) bool {
	fault := c.proxy.choose(request)
	if strings.EqualFold(request.Header.Get("Expect"), "100-continue") && !c.write("HTTP/1.1 100 Continue\r\n\r\n") {
		return false
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return false
	}
	switch fault {
	case RefuseBackend:
		c.proxy.shut()
		c.reset()
		return false
	case BusyBefore:
		return c.write(busyAnswer)
	case HangBefore:
		c.hang()
		return false
	}

	response, err := c.proxy.forward(request, body)
	if err != nil {
		c.reset() // a backend that is gone has no answer either
		return false
	}
	switch fault {
	case HangAfter:
		c.hang()
		return false
	case ErrorAfter:
		return c.write(errorAnswer)
	case CutBody:
		c.write(half(response))
		c.reset()
		return false
	case Garbage:
		c.write(garbage)
		return false
	case Stray:
		return c.write(response + strayAnswer)
	case StrayLate:
		if !c.write(response) {
			return false
		}
		c.proxy.pause()
		return c.write(strayAnswer)
	case CloseAfter:
		c.write(response)
		return false
	case Slow:
		c.proxy.pause()
	}
	return c.write(response)
}

// half cuts a response in the middle of its body, or of its head if it has none.
func half(response string) string {
	head, body, _ := strings.Cut(response, "\r\n\r\n")
	if body == "" {
		return response[:len(head)/2]
	}
	return response[:len(response)-(len(body)+1)/2]
}

func (c *call) write(bytes string) bool {
	_, err := io.WriteString(c.client, bytes)
	return err == nil
}

// hang waits until the client leaves or sends something.
func (c *call) hang() { _, _ = c.reader.Peek(1) }

// reset ends the connection as a killed process would: what the client has not
// read is lost.
func (c *call) reset() {
	if conn, ok := c.client.(*net.TCPConn); ok {
		_ = conn.SetLinger(0)
	}
	c.client.Close()
}

// forward carries out a request and returns the whole response.
func (b *BackendProxy) forward(request *http.Request, body []byte) (string, error) {
	outgoing := request.Clone(b.life)
	outgoing.URL.Scheme, outgoing.URL.Host = "http", b.target
	outgoing.RequestURI, outgoing.Close = "", false
	outgoing.Header.Del("Expect")
	outgoing.Header.Del("Connection")
	outgoing.Body, outgoing.ContentLength, outgoing.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	if len(body) == 0 {
		outgoing.Body = http.NoBody
	}
	response, err := b.transport.RoundTrip(outgoing)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	response.Close = false // that is between the backend and us
	response.Header.Del("Connection")
	var whole bytes.Buffer
	if err := response.Write(&whole); err != nil {
		return "", err
	}
	return whole.String(), nil
}

// pause waits as long as Slow is late.
func (b *BackendProxy) pause() {
	b.mu.Lock()
	timer := time.NewTimer(b.slowness)
	b.mu.Unlock()
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.life.Done():
	}
}
