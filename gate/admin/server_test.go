package admin

import (
	"encoding/json"
	"net"
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServeAnswersOnItsListenerUntilShutdown(t *testing.T) {
	b := newBench(t, "")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.server.Serve(ln) }()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + ln.Addr().String() + "/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var status map[string]any
	if err := json.NewDecoder(res.Body).Decode(&status); err != nil || status["version"] != "v1.2.3" {
		t.Errorf("%d %v %v", res.StatusCode, status, err)
	}
	if err := b.server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
