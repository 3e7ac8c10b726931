package redisstore

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/testbed"
)

// As Redis itself counts.
func TestTagsAreInTheirHashSlots(t *testing.T) {
	server := testbed.Redis(t, "--cluster-enabled", "yes")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	s := openStore(t, "127.0.0.1:1")
	pipe := client.Pipeline()
	replies := make([]*redis.IntCmd, hashSlots)
	for slot := range hashSlots {
		replies[slot] = pipe.ClusterKeySlot(context.Background(), s.epochAt(slot))
	}
	if _, err := pipe.Exec(context.Background()); err != nil {
		t.Fatal(err)
	}
	for slot, reply := range replies {
		if got := reply.Val(); got != int64(slot) {
			t.Fatalf("%s is in hash slot %d, want %d", s.epochAt(slot), got, slot)
		}
	}
}

func TestTheLowestHashSlotOfANode(t *testing.T) {
	const others = "1f 127.0.0.1:1@2 master - 0 1 1 connected 0-99\n"
	me := func(slots string) string {
		return others + "ab 127.0.0.1:3@4,host myself,master - 0 1 1 connected" + slots + "\n" + others
	}
	for nodes, want := range map[string]int{
		me(""): -1, me(" 0-5460"): 0, me(" 7"): 7, me(" 900-1000 5 20-30"): 5,
		me(" 0-5460 [0->-1f] [1->-1f]"): 2, me(" 3 9 [3->-1f]"): 9, me(" 3 [3->-1f]"): -1,
		me(" 100-200 [5-<-1f]"): 100,
	} {
		if got, replica, err := lowestSlot(nodes); err != nil || got != want || replica {
			t.Errorf("%q: %d, %v; want %d", nodes, got, err, want)
		}
	}
	for _, nodes := range []string{"", others, strings.Replace(me(" 1"), "myself,", "", 1), me(" x"), me(" 1-16384"), me(" -1")} {
		if got, _, err := lowestSlot(nodes); err == nil {
			t.Errorf("%q: %d", nodes, got)
		}
	}
	if got, replica, err := lowestSlot(strings.Replace(me(""), "master", "slave", 2)); err != nil || got != -1 || !replica {
		t.Errorf("a replica: %d, %t, %v", got, replica, err)
	}
}
