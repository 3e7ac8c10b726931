package interleave

import (
	"context"
	"fmt"

	"github.com/slotgate/slotgate/gate/store"
)

// gateSteps is what a gate does that loses the store, or finds another.
func (o *Outages) gateSteps(g int, w *outage) (steps []step[outage]) {
	if o.Away && !w.lost && w.failed < 0 {
		steps = append(steps, step[outage]{label: fmt.Sprintf("gate %d loses the store", g), local: func(w *outage) []string {
			w.away[g], w.lost = true, true
			return nil
		}})
	}
	switch {
	case w.away[g] && !w.passing[g]:
		steps = append(steps, step[outage]{label: fmt.Sprintf("gate %d is back", g), local: func(w *outage) []string {
			w.away[g] = false
			return nil
		}})
	case w.away[g]:
		steps = append(steps, o.touch(g, w, fmt.Sprintf("gate %d is back, marks the slot and registers what it passed by", g), passed))
	case w.tells[g] && !o.Silent:
		steps = append(steps, o.touch(g, w, fmt.Sprintf("gate %d marks the slot and registers what it has open", g), granted, passed))
	case w.marked[g] && o.journalled(g, w):
		steps = append(steps, o.resume(g))
	}
	if w.marked[g] && !w.tells[g] {
		steps = append(steps, o.tellAgain(g, w)...)
	}
	return steps
}

// journalled: all that was answered while the gate was away has been settled, and told
// again what may have been lost.
func (o *Outages) journalled(g int, w *outage) bool {
	for r, f := range w.flights {
		if r%gates == g && (f.stage == passed && f.job != pending || f.stage == justEnded && w.failed >= 0) {
			return false
		}
	}
	return true
}

// touch marks the slot. Registered are requests that are still at the backend.
func (o *Outages) touch(g int, w *outage, label string, stages ...stage) step[outage] {
	t := &store.Touch{Gate: fmt.Sprintf("gate-%d", g), Query: o.query(), Lease: forGood}
	name := fmt.Sprint("touch ", g)
	for r, f := range w.flights {
		for _, s := range stages {
			if r%gates == g && f.stage == s && f.job == pending {
				t.Forced = append(t.Forced, store.Forced{ID: attemptID(r), Hold: attemptID(r), Units: 1, HoldTTL: ticks(f.due), Lease: ticks(f.due)})
				name += fmt.Sprint(" ", r, f.due)
			}
		}
	}
	mark := call{name, func(p *play) (any, error) { return nil, p.Gate(g).Touch(context.Background(), t) }}
	return step[outage]{label: label, call: mark, then: func(w *outage, _ any, _, _ *state) (string, []string, error) {
		w.away[g], w.passing[g], w.tells[g], w.marked[g] = false, false, false, true
		return "", nil, nil
	}}
}

func (o *Outages) resume(g int) step[outage] {
	end := call{fmt.Sprint("resume ", g), func(p *play) (any, error) {
		return nil, p.Gate(g).Resume(context.Background(), o.query(), fmt.Sprintf("gate-%d", g))
	}}
	return step[outage]{label: fmt.Sprintf("gate %d ends its mark", g), call: end, then: func(w *outage, _ any, _, _ *state) (string, []string, error) {
		w.marked[g] = false
		return "", nil, nil
	}}
}

// tellAgain repeats the last settlements to another server.
func (o *Outages) tellAgain(g int, w *outage) (steps []step[outage]) {
	for r, f := range w.flights {
		if r%gates != g || f.stage != justEnded || w.failed < 0 {
			continue
		}
		again := o.settle(r, fmt.Sprintf("request %d at gate %d, once more,", r, g), f)
		steps = append(steps, again)
	}
	return steps
}

// lookSteps is a look at truth, by a gate that has the store. Slots are looked at that
// are not verified.
func (o *Outages) lookSteps(w *outage, at *state) (steps []step[outage]) {
	g := 0
	if w.away[g] {
		g = 1
	}
	switch w.look {
	case noLook:
		if counts(at) || w.away[g] {
			return nil
		}
		begin := call{fmt.Sprint("look ", g), func(p *play) (any, error) {
			return p.Look(g, &store.Look{Query: o.query(), ID: "the-look-at-truth", Lease: forGood})
		}}
		return []step[outage]{{label: fmt.Sprintf("gate %d begins a look", g), call: begin, then: func(w *outage, reply any, _, _ *state) (string, []string, error) {
			got := reply.(store.Looked)
			if got.Busy > 0 {
				return "", nil, errNothing
			}
			w.look = begun
			return fmt.Sprintf(": %d open", got.Open), nil, nil
		}}}
	case begun:
		left := o.remaining(w)
		return []step[outage]{{label: fmt.Sprintf("the look reads %d", left), local: func(w *outage) []string {
			w.look, w.value = read, int8(left)
			return nil
		}}}
	}
	if w.away[g] {
		return nil
	}
	end := call{fmt.Sprint("apply ", g, w.value), func(p *play) (any, error) {
		return p.Apply(g, &store.Reading{Look: &store.Look{Query: o.query(), ID: "the-look-at-truth", Lease: forGood},
			Found: true, Value: int64(w.value), Total: store.Learned, Hot: forGood, Refresh: forGood})
	}}
	return []step[outage]{{label: "the look is applied", call: end, then: func(w *outage, reply any, _, _ *state) (string, []string, error) {
		w.look, w.value = noLook, 0
		got := reply.(store.Applied)
		return fmt.Sprintf(": %t, %d available", got.Applied, got.After), nil, nil
	}}}
}

// failures are those of the store itself.
func (o *Outages) failures(w *outage, at *state) (steps []step[outage]) {
	if w.failed >= 0 || w.away != [gates]bool{} {
		return nil
	}
	if o.Behind && w.replica < 0 {
		steps = append(steps, step[outage]{label: "the replica is left behind", local: func(w *outage) []string {
			w.replica = at.id
			return nil
		}})
	}
	replace := func(label string, from int32) {
		steps = append(steps, step[outage]{
			label: label,
			call: call{fmt.Sprint("replace ", from), func(p *play) (any, error) {
				var data *Saved
				if from >= 0 {
					data = &p.known(from).Saved
				}
				p.Rig.(Fragile).Replace(data)
				return nil, nil
			}},
			then: func(w *outage, _ any, _, _ *state) (string, []string, error) {
				w.failed, w.replica = outageTTL, -1
				w.tells = [gates]bool{true, true}
				return "", nil, nil
			},
		})
	}
	if o.Behind && w.replica >= 0 && w.replica != at.id {
		replace("the replica takes over", w.replica)
	}
	if o.Emptied {
		replace("the store comes back empty", -1)
	}
	return steps
}
