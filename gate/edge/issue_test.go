package edge

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// TestWhoComesByHTTPS decides whether cookies that the gate sets are Secure.
func TestWhoComesByHTTPS(t *testing.T) {
	for _, row := range []struct {
		trusted, sent string
		secure        bool
	}{
		{"", "", false},
		{"", "X-Forwarded-Proto: https\r\n", false},
		{"10.0.0.0/8", "X-Forwarded-Proto: https\r\n", false},
		{"127.0.0.0/8", "X-Forwarded-Proto: https\r\n", true},
		{"127.0.0.0/8", "X-Forwarded-Proto: http\r\n", false},
		{"127.0.0.0/8", "", false},
	} {
		var got *gate.Request
		f := start(t, "", &testGate{serve: func(r *gate.Request) *gate.Reply {
			got = copied(r)
			return own(decision.DecisionSoldOut)
		}}, func(c *rules.ServerConfig) {
			if row.trusted != "" {
				c.TrustedProxies = append(c.TrustedProxies, netip.MustParsePrefix(row.trusted))
			}
		})
		ask(t, f.addr, "POST /book HTTP/1.1\r\nHost: x\r\n"+row.sent+"\r\n")
		if got.Secure != row.secure {
			t.Errorf("trusted %q, sent %q: %v", row.trusted, row.sent, got.Secure)
		}
	}
	files, trusting := testTLS(t)
	var got *gate.Request
	f := start(t, "", &testGate{serve: func(r *gate.Request) *gate.Reply {
		got = copied(r)
		return own(decision.DecisionSoldOut)
	}}, func(c *rules.ServerConfig) { c.TLS = files })
	client := http.Client{Transport: &http.Transport{TLSClientConfig: trusting}}
	defer client.CloseIdleConnections()
	resp, err := client.Post("https://"+f.addr+"/book", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !got.Secure {
		t.Error("over TLS itself: false")
	}
}
