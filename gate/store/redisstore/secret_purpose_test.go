package redisstore

import (
	"context"
	"testing"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
)

// TestGatesShareKeysForPurposes: what one gate signs another knows, and no key is another.
func TestGatesShareKeysForPurposes(t *testing.T) {
	server := testbed.Redis(t)
	a, b := openStore(t, server.Addr()), openStore(t, server.Addr())
	key := func(s *Store, purpose string) [32]byte {
		t.Helper()
		k, err := s.Secret(context.Background(), purpose)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	one := key(a, "one")
	if key(b, "one") != one || key(a, "two") == one || key(b, "") == one {
		t.Errorf("%x and %x, %x for another purpose", one, key(b, "one"), key(a, "two"))
	}
	if text := a.secret.names.Load().secret; store.DeriveKey(text, "one") != one {
		t.Error("the key is not the one that the secret gives")
	}
	server.Kill()
	if key(a, "one") != one {
		t.Error("a store that told its secret has to be asked again")
	}
}

func TestASecretThatNobodyTells(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr())
	server.Kill()
	if k, err := s.Secret(context.Background(), "one"); err == nil || k != [32]byte{} {
		t.Errorf("%x, %v", k, err)
	}
}
