package truth

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// BenchmarkReconcile compares 50,000 slots in Redis with SQLite, all of which agree
// but every thousandth. One pass takes seconds, the setup longer:
//
//	go test -run '^$' -bench Reconcile -benchtime 1x ./gate/truth
func BenchmarkReconcile(b *testing.B) {
	const slots = 50_000
	setup := gateSetup{Redis: testbed.Redis(b).Addr(), Database: filepath.Join(b.TempDir(), "lessons.db"), Gate: "gate-own"}
	db := openSQLite(b, setup.Database)
	for _, statement := range []string{
		"CREATE TABLE slot (id TEXT PRIMARY KEY, remain INTEGER)",
		fmt.Sprintf("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO slot SELECT 'lesson-' || i, 10 FROM n", slots),
	} {
		if _, err := db.Exec(statement); err != nil {
			b.Fatal(err)
		}
	}
	p, _, end, err := setup.open()
	if err != nil {
		b.Fatal(err)
	}
	defer end()
	loadAll(b, p, slots)
	if _, err := db.Exec("UPDATE slot SET remain = 9 WHERE id LIKE '%000'"); err != nil {
		b.Fatal(err)
	}

	for b.Loop() {
		runtime.GC()
		peak := watchHeap()
		o := ReconcileOptions{Row: func(Difference) error { return nil }}
		o.Rate = rules.Rate{Count: 1_000_000, Per: time.Second}
		began := time.Now()
		r, err := p.Reconcile(context.Background(), o)
		if err != nil || r.Slots != slots || r.Differences != slots/1000 || r.Failed != 0 {
			b.Fatalf("%v, report %+v", err, r)
		}
		b.ReportMetric(float64(slots)/time.Since(began).Seconds(), "slots/s")
		b.ReportMetric(float64(peak())/(1<<20), "MiB-heap-peak")
	}
}

func loadAll(b *testing.B, p *Pool, slots int) {
	b.Helper()
	p.pace = newPace(p.store, p.name, rules.Rate{}) // unbounded
	next := make(chan int)
	var loaders sync.WaitGroup
	for range 16 {
		loaders.Go(func() {
			for i := range next {
				if got := p.Load(context.Background(), fmt.Sprint("lesson-", i)); got != gate.LoadDone {
					b.Errorf("load of slot %d: %v", i, got)
				}
			}
		})
	}
	for i := range slots {
		next <- i + 1
	}
	close(next)
	loaders.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// watchHeap returns a function that ends it and tells the most bytes in use meanwhile.
func watchHeap() (peak func() uint64) {
	stop, result := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		var m runtime.MemStats
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			select {
			case <-tick.C:
			case <-stop:
				result <- most
				return
			}
		}
	}()
	return func() uint64 { close(stop); return <-result }
}
