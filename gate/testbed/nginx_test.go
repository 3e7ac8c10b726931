package testbed

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestNginxProxiesAndEndsWithItsTest(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.Host+" "+r.RequestURI)
	}))
	defer backend.Close()
	var pid int
	t.Run("life", func(t *testing.T) {
		server := Nginx(t, strings.TrimPrefix(backend.URL, "http://"))
		pid = server.child.PID
		resp, err := http.Get("http://" + server.Addr() + "/a%2Fb/../c")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if want := "HTTP/1.1 backend /a%2Fb/../c"; err != nil || string(body) != want {
			t.Errorf("the backend got %q (%v), want %q", body, err, want)
		}
		version, err := server.Version()
		if err != nil || !strings.HasPrefix(version, "nginx/") || server.child.Printed() != "" {
			t.Errorf("version %q (%v), printed %q", version, err, server.child.Printed())
		}
		http.DefaultClient.CloseIdleConnections()
	})
	if running(pid) {
		t.Errorf("nginx %d outlived its test", pid)
	}
}

func TestNginxWithABadBackendSaysWhy(t *testing.T) {
	server := &NginxServer{dir: t.TempDir()}
	server.binary, _ = lookServer("nginx")
	if err := server.start("no such host"); err == nil || !strings.Contains(err.Error(), "invalid parameter") {
		t.Errorf("error is %v, want what nginx printed", err)
	}
}
