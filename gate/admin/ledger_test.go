package admin

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

func TestTheLedgerReadsNewestFirst(t *testing.T) {
	b := newBench(t, "", store.Slot{Slot: "7", Capacity: 6})
	at := time.Date(2030, 9, 1, 10, 0, 0, 0, time.FixedZone("", 7200))
	b.slots.entries = []store.Entry{
		{ID: "2-0", Time: at, Hold: "h1", SubjectHash: "ab", Units: 2, From: decision.Held, To: decision.Confirmed, Cause: "booked"},
		{ID: "1-0", Time: at, Hold: "h1", SubjectHash: "ab", Units: 2, To: decision.Held, Cause: "decide"},
	}
	newest := `{"id":"2-0","time":"2030-09-01T08:00:00Z","hold":"h1","subject_hash":"ab","units":2,"from":"held","to":"confirmed","cause":"booked"}`
	first := `{"id":"1-0","time":"2030-09-01T08:00:00Z","hold":"h1","subject_hash":"ab","units":2,"from":"","to":"held","cause":"decide"}`
	b.body(b.call("GET", "/v1/slots/lessons/7/ledger", ""), `{"entries":[`+newest+`,`+first+`]}`)
	b.body(b.call("GET", "/v1/slots/lessons/7/ledger?limit=1", ""), `{"entries":[`+newest+`]}`)
	b.want(b.call("GET", "/v1/slots/lessons/7/ledger?limit=0", ""), http.StatusBadRequest, "limit must be")
	b.want(b.call("GET", "/v1/slots/cinema/7/ledger", ""), http.StatusNotFound, "no pool")
}

func TestALedgerWithoutEntries(t *testing.T) {
	b := newBench(t, "", store.Slot{Slot: "7", Capacity: 6})
	b.body(b.call("GET", "/v1/slots/lessons/7/ledger", ""), `{"entries":[]}`)
	b.want(b.call("GET", "/v1/slots/lessons/8/ledger", ""), http.StatusNotFound, "never seen")
	b.slots.fail(&store.Error{Op: "ledger", Kind: store.KindTimeout, Err: errors.New("slow")})
	b.want(b.call("GET", "/v1/slots/lessons/7/ledger", ""), http.StatusServiceUnavailable, "slow")
}
