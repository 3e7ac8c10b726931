package storetest

import (
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// orderTests are about looks that meet, come late or come twice.
var orderTests = []test{
	{"a look keeps others off until it is applied", func(f *fixture) {
		for name, prepare := range map[string]func(*store.Decide){"known": func(d *store.Decide) { f.sync(d, 1) }, "never seen": func(*store.Decide) {}} {
			d := request(truthful, func(d *store.Decide) { d.Slot = name })
			prepare(d)
			first := f.look(d)
			second := f.tryLook(d)
			f.between("busy", second.Looked.Busy, lookLease-moment, lookLease)
			if second.Looked.Busy = 0; second.Looked != (store.Looked{}) {
				f.Fatalf("%s: looked %+v beside busy", name, second.Looked)
			}
			f.look(d, func(l *store.Look) { l.ID = first.Look.ID }) // a copy of its call
			f.apply(says(first, 3))
			f.apply(says(f.look(d), 4))
			f.free(d, 4)
		}
	}},
	{"a look of a slot never seen makes none", func(f *fixture) {
		d := request(truthful)
		if r := f.look(d); r.Looked.Known || r.Looked.Born != 0 || r.Looked.At == 0 || r.Looked.Open != 0 {
			f.Fatalf("looked %+v", r.Looked)
		}
		f.unseen(d)
	}},
	{"looks of two slots do not meet", func(f *fixture) {
		d := request(truthful)
		f.look(d)
		f.look(again(d, func(d *store.Decide) { d.Slot = "lesson-2" }))
		f.look(again(d, func(d *store.Decide) { d.Pool = "seats" }))
	}},
	{"a look that is never applied keeps others off for its lease only", func(f *fixture) {
		d := request(truthful)
		late := f.look(d)
		f.Advance(lookLease + moment)
		f.apply(says(f.look(d), 3))
		f.refused(d, says(late, 9))
	}},
	{"a forced look waits for nobody, and both may be applied in order", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		first := f.look(d)
		second := f.look(d, forced)
		if second.Looked.At <= first.Looked.At {
			f.Fatalf("looked at %d, then at %d", first.Looked.At, second.Looked.At)
		}
		f.apply(says(first, 2))
		if busy := f.tryLook(d).Looked.Busy; busy == 0 {
			f.Fatal("the apply of another ended the lease of the forced look")
		}
		f.apply(says(second, 1))
		f.free(d, 1)
	}},
	{"a look that was made meanwhile will do, while it is fresh", func(f *fixture) {
		for name, end := range map[string]func(*store.Reading){
			"found": func(r *store.Reading) { f.apply(says(r, 3)) },
			"failed": func(r *store.Reading) {
				r.Found = false
				f.apply(r)
			},
		} {
			d := request(truthful, func(d *store.Decide) { d.Slot = name })
			fresh := func(l *store.Look) { l.Fresh = hot }
			end(f.look(d, fresh))
			if busy := f.tryLook(d, fresh).Looked.Busy; busy <= 0 {
				f.Fatalf("%s: looked again at once", name)
			}
			f.apply(says(f.look(d, fresh, forced), 2))
			f.apply(says(f.look(d), 3)) // one that does not ask
			f.Advance(hot + moment)
			f.look(d, fresh)
		}
	}},
	{"an apply of a later look makes earlier ones useless", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		first := f.look(d)
		second := f.look(d, forced)
		f.apply(says(second, 1))
		f.refused(d, says(first, 9))
		failed := *first
		failed.Found = false
		f.refused(d, &failed)
		missing := failed
		missing.Missing = true
		f.refused(d, &missing)
		f.free(d, 1)
	}},
	{"P3: a copy of an apply changes nothing", func(f *fixture) {
		d := request(truthful)
		r := says(f.look(d), 3)
		f.apply(r)
		f.refused(d, r)
		f.admit(again(d))
		f.refused(d, r)
		f.free(d, 2)
		known := says(f.look(d), 3)
		f.apply(known)
		f.refused(d, known)
	}},
	{"a look of a slot that lives anew since is useless", func(f *fixture) {
		d := request(truthful)
		r := f.look(d)
		f.admit(again(d, blind)) // makes the slot
		f.refused(d, says(r, 3))
		f.sync(d, 3)
		f.free(d, 2)
		r = f.look(d)
		r.Looked.Born++
		f.refused(d, says(r, 9))
	}},
	{"H18: a touch makes looks that began before it useless", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		before := f.look(d)
		f.touch(d, "gate-a")
		f.refused(d, says(before, 9))
		f.sync(d, 2)
		f.free(d, 2)
		f.resume(d, "gate-a")
		f.loads(d)
		unseen := request(truthful, func(d *store.Decide) { d.Slot = "lesson-2" })
		before = f.look(unseen)
		f.touch(unseen, "gate-a")
		f.refused(unseen, says(before, 9))
	}},
	{"a touched slot's counters only refuse, and are not believed once it is resumed", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 9)
		f.touch(d, "gate-a")
		for range 7 {
			f.finish(rules.Booked, again(d))
		}
		f.admit(again(d))
		f.expect(decision.NoRoom, again(d))
		f.expect(decision.SoldOut, again(d, withUnits(2)))
		if got := f.slot(d); !got.Dirty || !got.Verified {
			f.Fatalf("slot %+v", got)
		}
		f.resume(d, "gate-a")
		f.loads(d)
		if got := f.slot(d); got.Verified || got.Capacity != store.Learned {
			f.Fatalf("slot %+v", got)
		}
		f.sync(d, 2)
		f.free(d, 1)
		if got := f.slot(d); got.Dirty || !got.Verified {
			f.Fatalf("slot %+v", got)
		}
	}},
	{"nor when a gate's mark runs out", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 9)
		f.touch(d, "gate-a")
		f.Advance(markLease + moment)
		f.loads(d)
	}},
	{"an apply of an older leader is useless, that of none never", func(f *fixture) {
		d := request(truthful)
		led := func(fence, value int64) *store.Reading {
			r := says(f.look(d, forced), value)
			r.Fence = fence
			return r
		}
		f.apply(led(7, 3))
		f.apply(led(7, 4))
		f.refused(d, led(6, 9))
		f.apply(led(0, 5))
		f.refused(d, led(6, 9))
		f.apply(led(8, 6))
		f.refused(d, led(7, 9))
		f.free(d, 6)
	}},
	{"a reading that is refused ends its look all the same", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		r := f.look(d)
		f.touch(d, "gate-a")
		f.refused(d, says(r, 9))
		f.look(d)
	}},
}
