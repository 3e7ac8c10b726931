package redisstore

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/testbed"
)

// Many gates that start at once agree on one secret, and it does not stay for ever.
func TestGatesShareASecret(t *testing.T) {
	server := testbed.Redis(t)
	gates := make([]*Store, 8)
	var wg sync.WaitGroup
	for i := range gates {
		gates[i] = openStore(t, server.Addr())
		wg.Go(func() {
			if _, err := gates[i].current(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	first := gates[0].secret.names.Load().secret
	for _, gate := range gates {
		if got := gate.secret.names.Load().secret; got != first || len(got) != 64 {
			t.Errorf("secrets %q and %q", got, first)
		}
	}
	if ttl, err := gates[0].client.TTL(context.Background(), gates[0].keys.Secret()).Result(); err != nil || ttl < secretLife-time.Hour || ttl > secretLife {
		t.Errorf("the secret lives for %v, %v", ttl, err)
	}
}

// A Redis that comes back empty gets the running gate's secret, so that a gate
// started later knows the same names.
func TestARunningGatePutsItsSecretBack(t *testing.T) {
	server := testbed.Redis(t)
	running := openStore(t, server.Addr())
	if _, err := running.current(context.Background()); err != nil {
		t.Fatal(err)
	}
	secret := running.secret.names.Load().secret
	server.Restart()
	deadline := time.Now().Add(20 * time.Second)
	for {
		got, err := running.client.Get(context.Background(), running.keys.Secret()).Result()
		if err == nil && got == secret {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the secret is %q, %v; want %q", got, err, secret)
		}
	}
	later := openStore(t, server.Addr())
	d := booking(1)
	if _, err := admitted(running, d); err != nil {
		t.Fatal(err)
	}
	twin := *d
	twin.ID = "request-the-twin"
	if got, err := later.Decide(context.Background(), &twin); err != nil || got.Verdict != decision.Twin {
		t.Errorf("decided %s, %v; want twin", got.Verdict, err)
	}
}

// A configured secret is used and never written.
func TestAConfiguredSecretStaysOut(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr(), func(o *Options) { o.Secret = "configured" })
	if _, err := admitted(s, booking(1)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.client.Exists(context.Background(), s.keys.Secret()).Result(); err != nil || n != 0 {
		t.Errorf("%d secrets in the store, %v", n, err)
	}
	if s.secret.names.Load().secret != "configured" {
		t.Error("another secret is in use")
	}
}

// Neither keys nor scopes nor clients are readable in the store; a subject is only
// in the values of its holds.
func TestNamesAreNotReadable(t *testing.T) {
	w := newWire(t)
	d := booking(1)
	d.Key, d.Scope, d.Subject = "KEYTEXT", "SCOPETEXT", "SUBJECTTEXT"
	w.decide(d, decision.Admitted)
	for key, dump := range w.data() {
		for _, text := range []string{"KEYTEXT", "SCOPETEXT", "SUBJECTTEXT"} {
			inHold := text == "SUBJECTTEXT" && key == w.clear.keys.Slot(d.Pool, d.Slot).State
			if strings.Contains(key, text) || strings.Contains(dump, text) && !inHold {
				t.Errorf("%q stands in %q", text, key)
			}
		}
	}
}

func TestNamesDependOnEveryPartAndTheSecret(t *testing.T) {
	n := newNames("secret")
	seen := map[string]string{}
	for what, hash := range map[string]string{
		"key a b c": n.key("a", "b", "c"), "key ab - c": n.key("ab", "", "c"), "key a bc -": n.key("a", "bc", ""),
		"scope a": n.scope("a"), "subject a": n.subject("a"), "client a": n.client("a"),
		"another secret": newNames("another").key("a", "b", "c"),
	} {
		if other, ok := seen[hash]; ok {
			t.Errorf("%s and %s have one name", what, other)
		}
		seen[hash] = what
		if len(hash) != 22 {
			t.Errorf("%s is %q", what, hash)
		}
	}
	if n.scope("") != "" || n.subject("") != "" {
		t.Error("nothing has a name")
	}
}
