package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

func TestAResyncWithTruthIsALook(t *testing.T) {
	checked := time.Date(2030, 9, 1, 10, 0, 0, 0, time.UTC)
	b := newBench(t, "", store.Slot{Slot: "7", Capacity: 8, Confirmed: 3, CheckedAt: checked})
	b.gate.truth = store.TruthRemaining
	w := b.call("POST", "/v1/slots/lessons/7/resync", "")
	b.want(w, http.StatusOK, `"source":"truth","checked_at":"2030-09-01T10:00:00Z"`)
	if !slices.Equal(b.truth.looked, []string{"lessons/7"}) || len(b.slots.changes) != 0 {
		t.Fatalf("looked at %v, changed %v", b.truth.looked, b.slots.changes)
	}
	for _, c := range []struct {
		err    error
		status int
		detail string
	}{
		{store.ErrNoSlot, http.StatusNotFound, "truth has no such slot"},
		{errors.New("truth of pool lessons:\n\tthe server does not answer"), http.StatusBadGateway, "lessons: the server does not answer"},
		{&store.Error{Op: "look", Kind: store.KindTimeout, Err: errors.New("slow")}, http.StatusServiceUnavailable, "slow"},
	} {
		b.truth.err = c.err
		b.want(b.call("POST", "/v1/slots/lessons/7/resync", ""), c.status, c.detail)
	}
}

func TestTruthIsNotOverruled(t *testing.T) {
	for _, kind := range []store.TruthKind{store.TruthTotal, store.TruthRemaining} {
		b := newBench(t, "", store.Slot{Slot: "7", Capacity: 8})
		b.gate.truth = kind
		b.want(b.call("PUT", "/v1/slots/lessons/7", `{"capacity":9}`), http.StatusConflict, "takes its capacity from truth")
		if len(b.slots.changes) != 0 {
			t.Fatal("changed all the same")
		}
		b.want(b.call("PUT", "/v1/slots/lessons/7", `{"capacity":null,"closed":true}`), http.StatusOK, `"closed":true`)
	}
}

func TestASlotThatTruthDidNotTell(t *testing.T) {
	b := newBench(t, "", store.Slot{Slot: "7", Capacity: 8, Confirmed: 2, LookFailed: true, CheckedAt: time.Date(2030, 9, 1, 10, 0, 0, 0, time.UTC)})
	w := b.call("GET", "/v1/slots/lessons/7", "")
	for _, want := range []string{`"capacity":null`, `"available":null`, `"source":"learned"`, `"checked_at":"2030-09-01T10:00:00Z"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s is not in %s", want, w.Body)
		}
	}
}

func TestTheLastReportsAreInTheStatus(t *testing.T) {
	b := newBench(t, "")
	b.metrics.Report("workshops", 0, 0)
	b.metrics.Report("lessons", 1, 0)
	b.metrics.Report("lessons", 3, 2)
	var status struct{ Reports []reportView }
	if err := json.Unmarshal(b.call("GET", "/v1/status", "").Body.Bytes(), &status); err != nil {
		t.Fatal(err)
	}
	for i, want := range []reportView{{Pool: "lessons", Differences: 3, Damage: 2}, {Pool: "workshops"}} {
		got := status.Reports[i]
		if age := time.Since(got.At); age < 0 || age > time.Minute {
			t.Errorf("%s was reported %v ago", got.Pool, age)
		}
		if got.At = want.At; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
