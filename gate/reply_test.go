package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
)

// The memory of an answer is another's once it has been released, and not before.
func TestOwnRepliesAreNotMixedUp(t *testing.T) {
	f := newFixture(t, "capacity: 1", "limits: { rule: { rate: 1000000/s, burst: 1000000 } }")
	f.want(f.book(call{student: "ann"}), decision.DecisionAdmitted, 201)
	refused := map[decision.Decision]string{
		decision.DecisionSoldOut:      `{"student":"bob"}`,
		decision.DecisionUnidentified: `{}`,
		decision.DecisionAmbiguous:    `{"student":"bob","student":"cy"}`,
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			var open []*Reply // with the ids 0, 1, 2 …
			var want []decision.Decision
			for i := range 300 {
				for d, body := range refused {
					req := newRequest("POST", "/lessons/1/bookings", body, call{})
					req.ID = fmt.Sprint(worker, "-", len(open))
					m, _, _ := f.Route(req)
					open, want = append(open, f.Serve(req, m)), append(want, d)
				}
				if i%10 < 9 {
					continue
				}
				for n, reply := range open {
					var p decision.Problem
					if err := json.Unmarshal(reply.Body, &p); err != nil || p.RequestID != fmt.Sprint(worker, "-", n) ||
						p.Type != "urn:slotgate:"+string(want[n]) || reply.Decision != want[n] || reply.Status != p.Status || len(reply.Header) != 2 {
						t.Errorf("%v: %+v with the body %s", err, reply, reply.Body)
					}
					reply.Release()
				}
				open, want = open[:0], want[:0]
			}
		})
	}
	all.Wait()
}

// Nothing of an answer is left in the memory of the next.
func TestOwnRepliesAreReleasedEmpty(t *testing.T) {
	f := newFixture(t, "capacity: 1", "limits: { subject: { rate: 1/1h, burst: 1 } }")
	f.want(f.book(call{student: "ann"}), decision.DecisionAdmitted, 201)
	reply := f.want(f.book(call{student: "ann"}), decision.DecisionRateLimited, 429)
	header, body := reply.Header, reply.Body
	if len(header) != 5 {
		t.Fatalf("%v: want the fields of a limit", header)
	}
	reply.Release()
	if reply.Decision != "" || reply.Mode != "" || reply.Rule != "" || reply.Status != 0 || reply.Header != nil || reply.Body != nil {
		t.Errorf("released: %+v", reply)
	}
	if header[0].Name != "" || header[4].Value != "" || len(bytes.Trim(body, "\x00")) > 0 {
		t.Errorf("released with %v and %q", header, body)
	}
}
