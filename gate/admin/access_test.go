package admin

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

func TestTokenIsAskedForEverywhereButHealth(t *testing.T) {
	b := newBench(t, "s3cret")
	for _, path := range []string{"/metrics", "/v1/status", "/v1/rules", "/v1/slots?pool=lessons", "/v1/nothing"} {
		w := b.call("GET", path, "")
		b.want(w, http.StatusUnauthorized, "Bearer TOKEN")
		if got := w.Header().Get("WWW-Authenticate"); got != `Bearer realm="slotgate"` {
			t.Errorf("%s: WWW-Authenticate %q", path, got)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		b.want(b.call("GET", path, "", "Host: 10.1.2.3:9901"), http.StatusOK, "")
	}
	for _, credentials := range []string{"Bearer s3cret", "bearer s3cret", "Bearer  s3cret"} {
		b.want(b.call("GET", "/v1/status", "", "Authorization: "+credentials, "Host: gate.internal"), http.StatusOK, "")
	}
	for _, credentials := range []string{"Bearer s3cre", "Bearer s3crett", "Bearer", "s3cret", "Basic s3cret", "Bearer s3cret "} {
		b.want(b.call("GET", "/v1/status", "", "Authorization: "+credentials), http.StatusUnauthorized, "")
	}
	b.want(b.call("GET", "/v1/status", "", "Authorization: Bearer s3cret", "Authorization: Bearer s3cret"), http.StatusUnauthorized, "")
}

func TestWithoutTokenAForeignHostIsRefused(t *testing.T) {
	b := newBench(t, "")
	for _, host := range []string{"127.0.0.1:9901", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:9901", "127.9.9.9"} {
		b.want(b.call("GET", "/v1/rules", "", "Host: "+host), http.StatusOK, "")
	}
	for _, host := range []string{"evil.example:9901", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "[::2]:9901", ""} {
		b.want(b.call("GET", "/v1/rules", "", "Host: "+host), http.StatusForbidden, "loopback")
	}
}

func TestAnotherOriginMayChangeNothing(t *testing.T) {
	for _, token := range []string{"", "s3cret"} {
		b := newBench(t, token)
		auth := "Authorization: Bearer " + token
		for _, field := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: http://evil.example", "Origin: null", "Origin: http://127.0.0.1:8080"} {
			b.want(b.call("PUT", "/v1/mode", `{"mode":"off"}`, auth, field), http.StatusForbidden, "origin")
		}
		if mode := b.gate.Rules()[0].Mode; mode != "enforce" {
			t.Fatalf("a foreign page switched the mode to %s", mode)
		}
		for _, field := range []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none", "Origin: http://127.0.0.1:9901"} {
			b.want(b.call("PUT", "/v1/mode", `{"mode":"enforce"}`, auth, field), http.StatusOK, "")
		}
	}
}

func TestAnAddressOthersReachNeedsAToken(t *testing.T) {
	listening := func(listen, token string) error {
		_, err := New(Options{
			Gate: newFakeGate(), Slots: newFakeSlots(), Metrics: NewMetrics(testConfig(), "", ""),
			Listen: listen, Token: token, Logger: slog.New(slog.DiscardHandler),
		})
		return err
	}
	for _, listen := range []string{":9901", "0.0.0.0:9901", "[::]:9901", "10.0.0.1:9901", "gate.internal:9901"} {
		if err := listening(listen, ""); err == nil || !strings.Contains(err.Error(), "set admin.token") {
			t.Errorf("%s without a token: %v", listen, err)
		}
		if err := listening(listen, "s3cret"); err != nil {
			t.Errorf("%s with a token: %v", listen, err)
		}
	}
	for _, listen := range []string{"127.0.0.1:9901", "[::1]:9901", "localhost:9901"} {
		if err := listening(listen, ""); err != nil {
			t.Errorf("%s without a token: %v", listen, err)
		}
	}
}
