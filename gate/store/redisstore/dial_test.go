package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
)

func TestHoweverOftenADialFailedTheNextCallDials(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr(), func(o *Options) { o.PoolSize = 4 })
	connected(t, s)
	for range 3 {
		server.Kill()
		for range 20 {
			_, err := s.Decide(context.Background(), booking(1))
			failure, ok := err.(*store.Error)
			if !ok {
				t.Fatalf("a store that is away said %v", err)
			}
			expectFailure(t, failure, store.KindConnection, false)
		}
		server.Restart()
		back := time.Now()
		if err := s.Ping(context.Background()); err != nil {
			t.Fatalf("%v after the store was back: %v", time.Since(back), err)
		}
	}
}

// The clients of a cluster grow the list of its nodes, each its own.
func TestClientsOfAClusterShareNoList(t *testing.T) {
	o := Options{Addresses: append(make([]string, 0, 8), "127.0.0.1:1")}
	one, other := o.cluster(1).Addrs, o.cluster(1).Addrs
	one, other = append(one, "one"), append(other, "other")
	if one[1] != "one" || other[1] != "other" {
		t.Errorf("%q and %q", one, other)
	}
}
