package redisstore

import (
	"fmt"
	"testing"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/storetest"
	"github.com/slotgate/slotgate/gate/testbed"
)

// bySentinel are the options of a store on a deployment.
func bySentinel(d *testbed.SentinelDeployment) func(*Options) {
	return func(o *Options) { o.Mode, o.Addresses, o.MasterName = Sentinel, d.Addrs(), d.MasterName() }
}

func TestSentinelConformance(t *testing.T) {
	deployment := testbed.Sentinel(t)
	storetest.Run(t, harness("", bySentinel(deployment)))
}

// However the master goes, bookings go on a moment after there is another, and nothing
// is believed that it may lack.
func TestASentinelFailover(t *testing.T) {
	for name, end := range map[string]func(*testbed.RedisServer){
		"by kill": (*testbed.RedisServer).Kill, "by pause": (*testbed.RedisServer).Freeze,
	} {
		t.Run(name, func(t *testing.T) {
			deployment := testbed.Sentinel(t)
			s := openStore(t, "", quick, bySentinel(deployment))
			if n := admits(t, s, "one", 0); n != 10 {
				t.Fatalf("%d admitted at once", n)
			}
			old := deployment.Master()
			outage(t, s, at("two", 0), func() { end(old) }, func() { deployment.AwaitFailover(old) })
			standing(t, s, "one", false)
			if n := admits(t, s, "three", 30); n != store.LearnedInflight {
				t.Errorf("%d admitted at once, want %d", n, store.LearnedInflight)
			}
			run := s.server.now.Load().id
			if name == "by kill" {
				old.Restart()
			} else {
				old.Resume()
			}
			deployment.AwaitReady() // the old one is a replica now
			for n := range int64(200) {
				d := at(fmt.Sprint("after ", n), 2000+n)
				if _, err := admitted(s, d); err != nil {
					t.Fatal(err)
				}
			}
			if now := s.server.now.Load().id; now != run {
				t.Errorf("the run is %s, was %s", now, run)
			}
		})
	}
}
