package gate

import "testing"

func TestLineKeepsTheOrderOfArrival(t *testing.T) {
	q := newQueue(3)
	if q.lined("s") {
		t.Fatal("an empty line")
	}
	a, b, c := q.join("s"), q.join("s"), q.join("other")
	if !a.isFirst() || b.isFirst() || !c.isFirst() {
		t.Fatal("each slot has a line of its own, its earliest is first")
	}
	if q.join("s") != nil || q.len() != 3 {
		t.Fatal("the pool's queue is bounded over all its lines")
	}
	a.leave()
	if !b.isFirst() || !q.lined("s") {
		t.Fatal("the next one comes first")
	}
	d := q.join("s")
	e := q.join("s")
	if e != nil {
		t.Fatal("full again")
	}
	b2 := b
	d.leave() // from the middle: nobody moves up
	if !b2.isFirst() {
		t.Fatal("leaving behind it changed the first")
	}
	b.leave()
	c.leave()
	if q.lined("s") || q.lined("other") || q.len() != 0 || len(q.bySlot) != 0 {
		t.Fatalf("something is kept: %d waiting, %d lines", q.len(), len(q.bySlot))
	}
}
