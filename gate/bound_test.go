package gate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store/memstore"
)

const half = `on_store_failure: local
    passthrough: { share: 0.5, slot: { rate: 1000/s, burst: 1000 }, rule: { rate: 1000/s, burst: 1000 }, max_inflight: 100 }`

// shared is the configuration of gates that go on with half of what they last knew.
func shared(pool string) string {
	return "store: { breaker: { open_for: 100ms } }\n" + strings.NewReplacer("POOL", pool, "RULE", half).Replace(lessons)
}

// gates are gates with the same configuration over one store, each with a way to it of
// its own.
func gates(t *testing.T, n int, yaml string) []*fixture {
	t.Helper()
	memory := memstore.New(memstore.Options{})
	t.Cleanup(func() { memory.Close() })
	list := make([]*fixture, n)
	for i := range list {
		way := &flaky{Store: memory}
		list[i] = newFixtureOn(t, yaml, nil, way)
		list[i].store = way
		t.Cleanup(func() { way.set(nil, nil) }) // so that closing does not wait in vain
	}
	return list
}

// passes sends so many students and returns how many were let through; each answer must
// tell the bound.
func (f *fixture) passes(students int, bound string) (passed int) {
	f.t.Helper()
	for range students {
		r := f.book(call{student: fmt.Sprint("student ", f.students.Add(1))})
		if r.Bound != bound || r.Mode != ModeDegraded {
			f.t.Fatalf("bound %q in mode %s, want %q", r.Bound, r.Mode, bound)
		}
		switch r.Decision {
		case decision.DecisionPassthrough:
			passed++
		case decision.DecisionStoreDown, decision.DecisionSoldOut:
		default:
			f.t.Fatalf("%+v", r)
		}
	}
	return passed
}

func TestWithoutTheStoreTheGatesTogetherAdmitNoMoreThanTheirShares(t *testing.T) {
	pair := gates(t, 2, shared("capacity: 9"))
	for i, f := range pair {
		f.want(f.book(call{student: fmt.Sprint("early ", i)}), decision.DecisionAdmitted, 201)
	}
	pair[0].want(pair[0].book(call{student: "late"}), decision.DecisionAdmitted, 201)
	for _, f := range pair {
		f.goAway()
	}
	// 6 are left, of which the second gate has not heard: it last knew 7.
	passed := 0
	for _, f := range pair {
		passed += f.passes(20, "3")
	}
	if passed != 6 {
		t.Fatalf("%d passed where 6 were left", passed)
	}

	// A gate that is started in the outage knows nothing, and admits nothing.
	ctx, stop := context.WithCancel(t.Context())
	stop()
	pair[0].Close(ctx)
	restarted := newFixtureOn(t, shared("capacity: 9"), nil, pair[0].store)
	restarted.store = pair[0].store
	restarted.store.set(down(false), nil)
	if n := restarted.passes(20, "0"); n != 0 {
		t.Fatalf("a gate that knows nothing let %d pass", n)
	}
	if bound := restarted.Status().Bound["lessons"]; bound != "0" {
		t.Errorf("its status says %q", bound)
	}
	restarted.store.set(nil, nil)
}

func TestAShareIsGivenAwayOnce(t *testing.T) {
	f := newFixtureYAML(t, shared("capacity: 9"))
	f.want(f.book(call{student: "early"}), decision.DecisionAdmitted, 201)
	// Calls that fail before the store counts as away are of the same outage.
	f.store.set(down(false), nil)
	passed := 0
	for !f.Status().Degraded {
		passed += f.passes(1, "4")
	}
	if passed == 0 {
		t.Fatal("the store was away before it had failed")
	}
	passed += f.passes(20, "4")
	if passed != 4 {
		t.Fatalf("%d passed, half of 8 were to", passed)
	}

	f.comeBack()
	f.goAway() // before the store has told what is left of the 8
	if n := f.passes(20, "0"); n != 0 {
		t.Fatalf("%d passed in a second outage", n)
	}
	f.comeBack()
	f.want(f.book(call{student: "between"}), decision.DecisionAdmitted, 201)
	f.goAway()
	if n := f.passes(20, "1"); n != 1 { // half of the 3 that are left
		t.Fatalf("%d passed in a third outage", n)
	}
	f.comeBack()
}

func TestTheStatusTellsTheBoundThatAnswersTell(t *testing.T) {
	f := newFixtureYAML(t, `
upstream: { url: "http://127.0.0.1:9" }
pools: { passed: { capacity: 9 }, shared: { capacity: 9 }, refused: { capacity: 9 }, mixed: { capacity: 9 }, unused: { capacity: 9 } }
rules:
  - { name: passed, match: { methods: [POST], path: "/passed/{slot}" }, action: book, pool: passed, slot: path:slot, on_store_failure: pass }
  - { name: shared, match: { methods: [POST], path: "/shared/{slot}" }, action: book, pool: shared, slot: path:slot, on_store_failure: local, passthrough: { share: 0.5, slot: { rate: 1000/s, burst: 1000 } } }
  - { name: refused, match: { methods: [POST], path: "/refused/{slot}" }, action: book, pool: refused, slot: path:slot, on_store_failure: reject }
  - { name: one, match: { methods: [POST], path: "/one/{slot}" }, action: book, pool: mixed, slot: path:slot, on_store_failure: local }
  - { name: other, match: { methods: [POST], path: "/other/{slot}" }, action: book, pool: mixed, slot: path:slot, on_store_failure: pass }
`)
	post := func(path string) *Reply { return f.call("POST", path, "", call{}) }
	for _, path := range []string{"/shared/1", "/shared/2", "/shared/2", "/one/1"} {
		f.want(post(path), decision.DecisionAdmitted, 201)
	}
	if bound := f.Status().Bound; len(bound) != 0 {
		t.Fatalf("in normal mode %v", bound)
	}
	f.store.set(down(false), nil)
	for i := 0; !f.Status().Degraded; i++ {
		post(fmt.Sprint("/passed/", i))
	}
	want := map[string]string{"passed": "backend", "shared": "7", "refused": "0", "mixed": "backend", "unused": "0"}
	for range 2 { // admitting does not move the bound
		if bound := f.Status().Bound; fmt.Sprint(bound) != fmt.Sprint(want) {
			t.Fatalf("%v, want %v", bound, want)
		}
		for path, bound := range map[string]string{"/passed/1": "backend", "/shared/1": "4", "/shared/2": "3", "/shared/3": "0", "/refused/1": "0"} {
			if r := post(path); r.Bound != bound {
				t.Errorf("%s: bound %q, want %q", path, r.Bound, bound)
			}
		}
	}
	f.store.set(nil, nil)
}
