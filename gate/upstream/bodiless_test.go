package upstream

import (
	"bufio"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

// TestABodilessAnswerThatAnnouncesABodyEndsItsConnection: the body of a 204 or of an
// answer to HEAD may come late. It must never be the next user's answer, whether it
// arrives before the next request or in the middle of it.
func TestABodilessAnswerThatAnnouncesABodyEndsItsConnection(t *testing.T) {
	for name, poison := range map[string]struct{ method, head string }{
		"204 with a length":  {"POST", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"},
		"204 in chunks":      {"POST", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"},
		"HEAD with a length": {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { listener.Close() })
			connections := make(chan int, 8)
			go func() {
				for n := 1; ; n++ {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					connections <- n
					go func() {
						defer conn.Close()
						in := bufio.NewReader(conn)
						for {
							req, err := http.ReadRequest(in)
							if err != nil {
								return
							}
							if req.URL.Path == "/poison" {
								_, _ = conn.Write([]byte(poison.head))
								continue
							}
							// What should have been the body of before comes first.
							_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nvictim"))
						}
					}()
				}
			}()
			client, err := New(Options{URL: "http://" + listener.Addr().String(), Timeout: 5 * time.Second, KeepAlive: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			for _, step := range []struct{ method, path string }{{poison.method, "/poison"}, {"POST", "/next"}} {
				a, err := client.Forward(&gate.Forward{
					Request: &gate.Request{Request: rules.Request{Method: step.method, Path: step.path, Host: "x"}},
					SendBy:  time.Now().Add(5 * time.Second), Timeout: 5 * time.Second, Limit: 1 << 20,
				})
				if err != nil {
					t.Fatal(err)
				}
				if a.Release != nil {
					a.Release()
				}
			}
			if len(connections) != 2 {
				t.Fatalf("%d connections for two requests, want one each", len(connections))
			}
		})
	}
}
