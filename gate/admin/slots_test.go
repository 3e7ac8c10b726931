package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

func TestASlotReadsAsTheContractSays(t *testing.T) {
	expires := time.Date(2030, 9, 1, 10, 0, 0, 0, time.FixedZone("", 7200))
	b := newBench(t, "",
		store.Slot{
			Slot: "7", Capacity: 8, Own: true, Confirmed: 2, Held: 1, Full: 3, Version: 4, Inflight: 1, OpensAt: expires,
			Holds: []store.Hold{
				{ID: "h1", Subject: "s", Units: 1, State: decision.Held, ExpiresAt: expires},
				{ID: "h2", Subject: "t", Units: 2, State: decision.Confirmed, Reference: "B-1"},
			},
		},
		store.Slot{Slot: "8", Capacity: store.Learned, Held: 1, Closed: true, Dirty: true},
		store.Slot{Slot: "9", Capacity: 2, Confirmed: 3},
	)
	b.gate.demand = map[string]gate.Demand{"7": {Waiting: 4, Rejected: 31}}
	b.body(b.call("GET", "/v1/slots/lessons/7", ""), `{"pool":"lessons","slot":"7","capacity":8,"confirmed":2,"held":1,"available":5,"closed":false,"full":true,"dirty":false,"version":4,"inflight":1,"waiting":4,"rejected":31,"source":"operator","checked_at":null,"opens_at":"2030-09-01T08:00:00Z","holds":[`+
		`{"id":"h1","subject":"s","units":1,"state":"held","reference":"","expires_at":"2030-09-01T08:00:00Z"},`+
		`{"id":"h2","subject":"t","units":2,"state":"confirmed","reference":"B-1","expires_at":null}]}`)
	b.body(b.call("GET", "/v1/slots/lessons/8", ""), `{"pool":"lessons","slot":"8","capacity":null,"confirmed":0,"held":1,"available":null,"closed":true,"full":false,"dirty":true,"version":0,"inflight":0,"waiting":0,"rejected":0,"source":"learned","checked_at":null,"opens_at":null,"holds":[]}`)
	b.body(b.call("GET", "/v1/slots/lessons/9", ""), `{"pool":"lessons","slot":"9","capacity":2,"confirmed":3,"held":0,"available":0,"closed":false,"full":false,"dirty":false,"version":0,"inflight":0,"waiting":0,"rejected":0,"source":"config","checked_at":null,"opens_at":null,"holds":[]}`)

	b.want(b.call("GET", "/v1/slots/lessons/10", ""), http.StatusNotFound, "never seen")
	b.want(b.call("GET", "/v1/slots/seats/7", ""), http.StatusNotFound, `no pool "seats"; pools are lessons`)
}

func TestSlotNamesAreAnyText(t *testing.T) {
	for _, slot := range []string{"a/b", "..", ".", "/", "%", "%2F", "a b", "a+b", "名额", "{7}", "a:b", "\x00", "\xff", "?#&=", "holds", strings.Repeat("é", 512)} {
		b := newBench(t, "")
		target := "/v1/slots/lessons/" + strings.ReplaceAll(url.PathEscape(slot), ".", "%2E")
		b.want(b.call("PUT", target, `{"closed":true}`), http.StatusOK, "")
		if got, ok := b.slots.slots[slot]; !ok || !got.Closed {
			t.Errorf("slot %q: the store has %v", slot, b.slots.slots)
		}
		b.want(b.call("GET", target, ""), http.StatusOK, "")
	}
	b := newBench(t, "")
	b.want(b.call("PUT", "/v1/slots/lessons/"+strings.Repeat("x", 1025), `{"closed":true}`), http.StatusBadRequest, "at most 1024 bytes")
}

func TestChangesOfASlot(t *testing.T) {
	b := newBench(t, "")
	put := func(body string) store.SlotChange {
		t.Helper()
		b.want(b.call("PUT", "/v1/slots/lessons/7", body), http.StatusOK, "")
		return b.slots.changes[len(b.slots.changes)-1]
	}
	if c := put(`{"capacity":8}`); c.Capacity == nil || *c.Capacity != 8 || c.ClearCapacity || c.Closed != nil || c.OpensAt != nil {
		t.Errorf("capacity 8 came as %+v", c)
	}
	if c := put(`{"capacity":0}`); c.Capacity == nil || *c.Capacity != 0 {
		t.Errorf("capacity 0 came as %+v", c)
	}
	if c := put(`{"capacity":null}`); c.Capacity != nil || !c.ClearCapacity {
		t.Errorf("capacity null came as %+v", c)
	}
	if c := put(`{"closed":true}`); c.Closed == nil || !*c.Closed || c.ClearCapacity {
		t.Errorf("closed came as %+v", c)
	}
	opens := time.Date(2030, 9, 1, 8, 0, 0, 0, time.UTC)
	if c := put(`{"closed":false,"opens_at":"2030-09-01T10:00:00+02:00"}`); c.Closed == nil || *c.Closed || c.OpensAt == nil || !c.OpensAt.Equal(opens) {
		t.Errorf("closed and opens_at came as %+v", c)
	}
	if c := put(`{"opens_at":null}`); c.OpensAt == nil || !c.OpensAt.IsZero() {
		t.Errorf("opens_at null came as %+v", c)
	}

	before := len(b.slots.changes)
	for body, detail := range map[string]string{
		`{}`:                                       "nothing to change",
		`{"capacity":-1}`:                          `"capacity" must be a whole number`,
		`{"capacity":1.5}`:                         `"capacity" must be a whole number`,
		`{"capacity":"8"}`:                         `"capacity" must be a whole number`,
		`{"capacity":9007199254740992}`:            `"capacity" must be a whole number`,
		`{"capacity":99999999999999999}`:           `"capacity" must be a whole number`,
		`{"closed":null}`:                          `"closed" must be true or false`,
		`{"closed":"true"}`:                        `"closed" must be true or false`,
		`{"opens_at":"tomorrow"}`:                  `"opens_at" must be a time`,
		`{"opens_at":1893456000}`:                  `"opens_at" must be a time`,
		`{"opens_at":""}`:                          `"opens_at" must be a time`,
		`{"opens_at":"0000-01-01T00:00:00+01:00"}`: `"opens_at" must be a time`,
		`{"opens_at":"9999-12-31T23:00:00-01:00"}`: `"opens_at" must be a time`,
		`{"capcity":8}`:                            `unknown member "capcity"`,
		`{"capacity":8,"capacity":9}`:              `member "capacity" is there twice`,
	} {
		b.want(b.call("PUT", "/v1/slots/lessons/7", body), http.StatusBadRequest, detail)
	}
	if len(b.slots.changes) != before {
		t.Error("a refused body reached the store")
	}
	b.want(b.call("PUT", "/v1/slots/seats/7", `{"capacity":8}`), http.StatusNotFound, "no pool")
}

func TestAHoldIsReleased(t *testing.T) {
	b := newBench(t, "", store.Slot{Slot: "7", Capacity: 2, Holds: []store.Hold{{ID: "h1", State: decision.HoldUnknown}}})
	b.body(b.call("DELETE", "/v1/slots/lessons/7/holds/h1", ""), `{"hold":"h1","state":"released","was":"unknown"}`)
	b.want(b.call("DELETE", "/v1/slots/lessons/7/holds/h2", ""), http.StatusNotFound, "no such open or confirmed hold")
}

func TestAListIsPaged(t *testing.T) {
	slots := make([]store.Slot, 250)
	for i := range slots {
		slots[i] = store.Slot{Slot: fmt.Sprintf("s%03d", i), Capacity: 1}
	}
	b := newBench(t, "", slots...)
	type page struct {
		Slots  []map[string]any
		Cursor string
	}
	read := func(query string) (p page) {
		t.Helper()
		w := b.call("GET", "/v1/slots?pool=lessons"+query, "")
		b.want(w, http.StatusOK, "")
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := read(""); len(p.Slots) != defaultListLimit || p.Cursor == "" {
		t.Errorf("first page: %d slots, cursor %q", len(p.Slots), p.Cursor)
	}
	seen, cursor := 0, ""
	for {
		p := read("&limit=120&cursor=" + url.QueryEscape(cursor))
		seen += len(p.Slots)
		if cursor = p.Cursor; cursor == "" {
			break
		}
	}
	if seen != len(slots) {
		t.Errorf("pages hold %d slots, want %d", seen, len(slots))
	}
	if p := read("&limit=10000"); len(p.Slots) != len(slots) || p.Slots[0]["holds"] == nil {
		t.Errorf("one page of all: %d slots, the first %v", len(p.Slots), p.Slots[0])
	}
	for _, limit := range []string{"0", "-1", "10001", "many", "1.5"} {
		b.want(b.call("GET", "/v1/slots?pool=lessons&limit="+limit, ""), http.StatusBadRequest, "from 1 to 10000")
	}
	b.want(b.call("GET", "/v1/slots", ""), http.StatusBadRequest, "pools are lessons")
	b.want(b.call("GET", "/v1/slots?pool=seats", ""), http.StatusNotFound, `no pool "seats"`)
}

func TestAStoreThatFailsIs503(t *testing.T) {
	b := newBench(t, "", store.Slot{Slot: "7", Holds: []store.Hold{{ID: "h1", State: decision.Held}}})
	b.slots.fail(&store.Error{Op: "slot", Kind: store.KindConnection, Err: errors.New("connection refused")})
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/slots?pool=lessons", ""},
		{"GET", "/v1/slots/lessons/7", ""},
		{"PUT", "/v1/slots/lessons/7", `{"capacity":1}`},
		{"DELETE", "/v1/slots/lessons/7/holds/h1", ""},
	} {
		w := b.call(c.method, c.path, c.body)
		b.want(w, http.StatusServiceUnavailable, "connection refused")
		if w.Header().Get("Retry-After") == "" {
			t.Errorf("%s %s: no Retry-After", c.method, c.path)
		}
	}
}
