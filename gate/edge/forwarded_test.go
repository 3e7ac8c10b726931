package edge

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

func TestForwarded(t *testing.T) {
	for _, test := range []struct {
		name, trusted, sent string
		client              string
		want                string // X-Forwarded-For | -Host | -Proto | Forwarded
		via                 string
	}{
		{name: "nothing sent", client: "127.0.0.1",
			want: "127.0.0.1|x|http|for=127.0.0.1;host=x;proto=http"},
		{name: "not trusted", trusted: "10.0.0.0/8", client: "127.0.0.1",
			sent: "X-Forwarded-For: 6.6.6.6\r\nx_forwarded_for: 6.6.6.6\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: https\r\nForwarded: for=6.6.6.6\r\n",
			want: "127.0.0.1|x|http|for=127.0.0.1;host=x;proto=http"},
		{name: "trusted", trusted: "127.0.0.0/8", client: "9.9.9.9",
			sent: "X-Forwarded-For: 6.6.6.6, 9.9.9.9\r\nX-Forwarded-Host: shop.example:444\r\nX-Forwarded-Proto: HTTPS\r\n",
			want: `6.6.6.6, 9.9.9.9, 127.0.0.1|shop.example:444|https|for=6.6.6.6, for=9.9.9.9, for=127.0.0.1;host="shop.example:444";proto=https`},
		{name: "trusted, two lines", trusted: "127.0.0.0/8", client: "9.9.9.9",
			sent: "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 9.9.9.9\r\n",
			want: "6.6.6.6, 9.9.9.9, 127.0.0.1|x|http|for=6.6.6.6, for=9.9.9.9, for=127.0.0.1;host=x;proto=http"},
		{name: "two trusted hops", trusted: "127.0.0.0/8 10.0.0.0/8", client: "2001:db8::7",
			sent: "X-Forwarded-For: 6.6.6.6, [2001:db8::7]:5000, 10.1.2.3:80\r\n",
			want: `6.6.6.6, [2001:db8::7]:5000, 10.1.2.3:80, 127.0.0.1|x|http|for=6.6.6.6, for="[2001:db8::7]", for=10.1.2.3, for=127.0.0.1;host=x;proto=http`},
		{name: "all trusted", trusted: "127.0.0.0/8 10.0.0.0/8", client: "10.1.2.3",
			sent: "X-Forwarded-For: 10.1.2.3\r\n",
			want: "10.1.2.3, 127.0.0.1|x|http|for=10.1.2.3, for=127.0.0.1;host=x;proto=http"},
		{name: "no address", trusted: "127.0.0.0/8", client: "127.0.0.1",
			sent: "X-Forwarded-For: 6.6.6.6, unknown\r\nX-Forwarded-Proto: gopher\r\nX-Forwarded-Host: a, b\r\n",
			want: "6.6.6.6, unknown, 127.0.0.1|x|http|for=6.6.6.6, for=unknown, for=127.0.0.1;host=x;proto=http"},
		{name: "Forwarded", trusted: "127.0.0.0/8", client: "2001:db8::7",
			sent: "Forwarded: for=\"a,b\";by=c, For=\"[2001:db8::7]:9\" ; proto=https\r\n",
			want: `a,b, [2001:db8::7]:9, 127.0.0.1|x|http|for="a,b";by=c, For="[2001:db8::7]:9" ; proto=https, for=127.0.0.1;host=x;proto=http`},
		{name: "Via", client: "127.0.0.1", sent: "Via: 1.0 a\r\nVia: 1.1 b\r\n", via: "1.0 a, 1.1 b, ",
			want: "127.0.0.1|x|http|for=127.0.0.1;host=x;proto=http"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got *gate.Request
			f := start(t, "", &testGate{serve: func(r *gate.Request) *gate.Reply {
				got = copied(r)
				return own(decision.DecisionSoldOut)
			}}, func(c *rules.ServerConfig) {
				for _, prefix := range strings.Fields(test.trusted) {
					c.TrustedProxies = append(c.TrustedProxies, netip.MustParsePrefix(prefix))
				}
			})
			ask(t, f.addr, "POST /book HTTP/1.1\r\nHost: x\r\n"+test.sent+"\r\n")
			var lines []string
			for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded"} {
				lines = append(lines, lineOf(t, got.Header, name))
			}
			if line := strings.Join(lines, "|"); line != test.want {
				t.Errorf("sent on\n%s, want\n%s", line, test.want)
			}
			if got.Client.String() != test.client {
				t.Errorf("client %s, want %s", got.Client, test.client)
			}
			if via := lineOf(t, got.Header, "Via"); via != test.via+"1.1 slotgate" {
				t.Errorf("Via %q", via)
			}
		})
	}
}

// lineOf is the value of a field that must be there once, in whatever spelling.
func lineOf(t *testing.T, fields []rules.Field, name string) string {
	t.Helper()
	value, n := "", 0
	for _, f := range fields {
		if equalFolded(f.Name, name) {
			value = f.Value
			n++
		}
	}
	if n != 1 {
		t.Errorf("%s is there %d times", name, n)
	}
	return value
}

func TestOtherForwardedFieldsComeFromTrustedProxiesOnly(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		kept, _ := clientFields([]rules.Field{{Name: "X-Forwarded-User", Value: "root"}, {Name: "X_Forwarded_For", Value: "6.6.6.6"}}, trusted)
		if trusted != (len(kept) == 1) {
			t.Errorf("trusted %v: %v", trusted, kept)
		}
	}
}
