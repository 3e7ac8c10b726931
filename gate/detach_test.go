package gate

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// What is remembered of a request is what was read from it, and not the head that it was
// read from: memory would be bounded by what clients send beside it.
func TestNothingKeepsTheHeadsOfRequests(t *testing.T) {
	const requests, head = 1000, 16 << 10
	f := newFixture(t, "capacity: 100000", "idempotency: { key: [header:Idempotency-Key], required: true }")
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range requests {
		// One text, as the edge has it.
		key, lesson := fmt.Sprintf("key-%016d", i), fmt.Sprint(i%10)
		block := strings.Repeat("c", head) + "/lessons/" + lesson + "/bookings" + "Idempotency-Key: " + key
		path, field, _ := strings.Cut(block[head:], "Idempotency-Key: ")
		req := newRequest("POST", path, fmt.Sprintf(`{"student":"s%d"}`, i), call{})
		req.Header = append(req.Header, rules.Field{Name: "Idempotency-Key", Value: field})
		m, _, _ := f.Route(req)
		f.want(f.Serve(req, m), decision.DecisionAdmitted, 201)
	}
	after := heap()
	runtime.KeepAlive(f)
	if grown := int64(after) - int64(before); grown > requests*head/4 {
		t.Errorf("%d requests with heads of %d bytes left %d bytes behind", requests, head, grown)
	}
}
