package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// watchTests check that what happens through one gate wakes waiters at both.
var watchTests = []test{
	{"a key's watch fires when its owner settles", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Booked, rules.Refused, rules.Unknown} {
			d := request(withCapacity(9), withKey("k"), func(d *store.Decide) { d.Group = outcome.String() })
			got := f.admit(d)
			twin := again(d, waiting)
			f.expect(decision.Twin, twin)
			f.wakes(f.Store.WatchKey(twin), f.Other.WatchKey(twin), func() { f.settle(d, got, outcome) })
		}
	}},
	{"a key's watch fires when an attempt of before its owner's is booked", func(f *fixture) {
		d := request(withKey("k"), retrying)
		got := f.admit(d)
		f.settle(d, got, rules.Unknown)
		f.admit(again(d))
		twin := again(d, waiting)
		f.expect(decision.Twin, twin)
		f.wakes(f.Store.WatchKey(twin), f.Other.WatchKey(twin), func() { f.settle(d, got, rules.Booked) })
		f.replays(twin, d.ID)
	}},
	{"a guard's key is watched alike", func(f *fixture) {
		d := guard(withKey("k"))
		got := f.admit(d)
		twin := again(d, waiting)
		f.expect(decision.Twin, twin)
		f.wakes(f.Store.WatchKey(twin), f.Other.WatchKey(twin), func() { f.settle(d, got, rules.Done) })
	}},
	{"a slot's watch fires when room comes free", func(f *fixture) {
		d := request(withCapacity(9), func(d *store.Decide) { d.MaxInflight = 1 })
		got := f.admit(d)
		f.expect(decision.NoRoom, again(d, waiting))
		f.wakesSlot(d, func() { f.settle(d, got, rules.Booked) })
	}},
	{"a slot's watch fires when a subject's attempt ends", func(f *fixture) {
		d := request(withSubject("s"), onePerSubject)
		got := f.admit(d)
		f.expect(decision.SubjectBusy, again(d, waiting))
		f.wakesSlot(d, func() { f.settle(d, got, rules.Refused) })
	}},
	{"a slot's watch fires when an operator frees units", func(f *fixture) {
		d := request(withCapacity(1), func(d *store.Decide) { d.MaxInflight = 1 })
		f.admit(d)
		f.expect(decision.SoldOut, again(d, waiting))
		f.wakesSlot(d, func() { f.release(d, d.ID, decision.Held) })
		f.wakesSlot(d, func() { f.change(d, store.SlotChange{Capacity: ptr(int64(9))}) })
	}},
	{"another key's and another slot's watch may stay asleep, and all may be closed twice", func(f *fixture) {
		d := request(withKey("k"))
		for _, w := range []store.Watch{f.Store.WatchKey(d), f.Other.WatchSlot(d.Pool, d.Slot)} {
			w.Close()
			w.Close()
		}
		f.finish(rules.Booked, d)
	}},
	{"closing the store ends its watches", func(f *fixture) {
		d := request(withKey("k"))
		key, slot := f.Store.WatchKey(d), f.Store.WatchSlot(d.Pool, d.Slot)
		if err := f.Store.Close(); err != nil {
			f.Fatal(err)
		}
		f.fires(key)
		f.fires(slot)
		key.Close()
		slot.Close()
		after := f.Store.WatchSlot(d.Pool, d.Slot)
		f.fires(after)
		after.Close()
	}},
}

// fires fails unless the watch fires while somebody still waits for it.
func (f *fixture) fires(w store.Watch) {
	f.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.C():
	case <-timer.C:
		f.Fatal("the watch did not fire")
	}
}

// wakes fails unless both watches fire after event.
func (f *fixture) wakes(one, other store.Watch, event func()) {
	f.Helper()
	defer one.Close()
	defer other.Close()
	event()
	f.fires(one)
	f.fires(other)
}

func (f *fixture) wakesSlot(d *store.Decide, event func()) {
	f.Helper()
	f.wakes(f.Store.WatchSlot(d.Pool, d.Slot), f.Other.WatchSlot(d.Pool, d.Slot), event)
}
