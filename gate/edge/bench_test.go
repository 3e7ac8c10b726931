package edge

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

const (
	benchRequest = "POST /book HTTP/1.1\r\nHost: x\r\nUser-Agent: bench\r\nAccept: */*\r\nContent-Type: application/json\r\nCookie: session=abcdef\r\nContent-Length: 11\r\n\r\n{\"seat\": 1}"
	benchPage    = "GET /page HTTP/1.1\r\nHost: x\r\nUser-Agent: bench\r\nAccept: */*\r\nCookie: session=abcdef\r\n\r\n"
)

// instant is a backend that costs next to nothing.
func instant(b testing.TB) string {
	b.Helper()
	server := &fasthttp.Server{
		NoDefaultDate: true,
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType("application/json")
			ctx.SetBodyString("{\"id\": 123}")
		},
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = server.Serve(ln) }()
	b.Cleanup(func() { _ = server.Shutdown() })
	return ln.Addr().String()
}

// storm has parallel clients send raw over and over.
func storm(b *testing.B, addr, raw string) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = nc.Close() }()
		in := bufio.NewReader(nc)
		for pb.Next() {
			if _, err := io.WriteString(nc, raw); err != nil {
				b.Error(err)
				return
			}
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					b.Error(err)
					return
				}
				if line == "\r\n" {
					break
				}
			}
			if _, err := in.Discard(len("{\"id\": 123}")); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkPass(b *testing.B) {
	f := start(b, "http://"+instant(b), nil)
	storm(b, f.addr, benchPage)
}

func BenchmarkPassWithBody(b *testing.B) {
	f := start(b, "http://"+instant(b), nil)
	storm(b, f.addr, strings.Replace(benchRequest, "/book", "/page", 1))
}

func BenchmarkGated(b *testing.B) {
	f := start(b, "http://"+instant(b), nil)
	storm(b, f.addr, benchRequest)
}

// BenchmarkBareProxy is what fasthttp alone costs: no checks, no copies.
func BenchmarkBareProxy(b *testing.B) {
	hc := &fasthttp.HostClient{Addr: instant(b), Dial: func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) }}
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		if err := hc.Do(&ctx.Request, &ctx.Response); err != nil {
			ctx.SetStatusCode(502)
		}
	}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = server.Serve(ln) }()
	b.Cleanup(func() { _ = server.Shutdown() })
	storm(b, ln.Addr().String(), benchPage)
}
