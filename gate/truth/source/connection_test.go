package source

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed"
)

func TestReadsAreSafeForConcurrentUse(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database) {
		d.do("CREATE TABLE slots (slot int PRIMARY KEY, n int)", "INSERT INTO slots VALUES (1, 10), (2, 20)")
		s := d.bySlot()
		var readers sync.WaitGroup
		for range 16 {
			readers.Go(func() {
				for range 10 {
					for slot, want := range map[string]Value{"1": left(10), "2": left(20), "x": missing} {
						if got := read(t, s, slot); got != want {
							t.Errorf("slot %s is %+v, want %+v", slot, got, want)
						}
					}
				}
			})
		}
		readers.Wait()
	})
}

// A look after a change of the table is right, on connections that knew the old one.
func TestATableMayChange(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database) {
		d.do("CREATE TABLE slots (slot int PRIMARY KEY, n int)", "INSERT INTO slots VALUES (7, 70)")
		s := d.bySlot()
		if got := read(t, s, "7"); got != left(70) {
			t.Fatalf("slot 7 is %+v", got)
		}
		d.do("DROP TABLE slots", "CREATE TABLE slots (slot varchar(20) PRIMARY KEY, n numeric(10,2))", "INSERT INTO slots VALUES ('7', 71), ('abc', 72)")
		// The look that meets the change may fail; its connection is not used again.
		_, _ = s.Read(within(t, soon), "7")
		if got := read(t, s, "7"); got != left(71) {
			t.Errorf("slot 7 is %+v, want 71 left", got)
		}
		if got := read(t, s, "abc"); got != left(72) {
			t.Errorf("slot abc is %+v, want 72 left", got)
		}
	})
}

// wantsDeadline fails the test unless a look ends with its deadline, and not much later.
func wantsDeadline(t *testing.T, s Source) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	got, err := s.Read(ctx, "1")
	if err == nil {
		t.Errorf("read %+v from what does not answer", got)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the look took %s, want its 100 ms (%v)", took, err)
	}
}

func TestALockedTableDoesNotHangALook(t *testing.T) {
	locks := map[string]string{
		"postgres": "LOCK TABLE slots IN ACCESS EXCLUSIVE MODE",
		"mysql":    "LOCK TABLES slots WRITE",
		"sqlite":   "BEGIN EXCLUSIVE",
	}
	onEachDatabase(t, func(t *testing.T, d database) {
		d.do("CREATE TABLE slots (slot int PRIMARY KEY, n int)", "INSERT INTO slots VALUES (1, 10)")
		s := d.bySlot()
		if got := read(t, s, "1"); got != left(10) {
			t.Fatalf("slot 1 is %+v", got)
		}
		conn, err := d.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lock := locks[d.driver]
		if d.driver == "postgres" {
			lock = "BEGIN; " + lock
		}
		if _, err := conn.ExecContext(t.Context(), lock); err != nil {
			t.Fatal(err)
		}
		for range connections + 2 {
			wantsDeadline(t, s)
		}
		unlock := map[string]string{"postgres": "ROLLBACK", "mysql": "UNLOCK TABLES", "sqlite": "ROLLBACK"}[d.driver]
		if _, err := conn.ExecContext(t.Context(), unlock); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if got := read(t, s, "1"); got != left(10) {
			t.Errorf("after that slot 1 is %+v, want 10 left", got)
		}
	})
}

func TestAFrozenServerDoesNotHangALook(t *testing.T) {
	server := testbed.MariaDB(t)
	d := database{t: t, driver: "mysql", dsn: server.DSN(), parameter: "?"}.open("mysql")
	d.do("CREATE TABLE slots (slot int PRIMARY KEY, n int)", "INSERT INTO slots VALUES (1, 10)")
	s := d.bySlot()
	if got := read(t, s, "1"); got != left(10) {
		t.Fatalf("slot 1 is %+v", got)
	}
	server.Freeze()
	for range connections + 2 { // those that are open, and new ones
		wantsDeadline(t, s)
	}
	server.Resume()
	if got := read(t, s, "1"); got != left(10) {
		t.Errorf("after that slot 1 is %+v, want 10 left", got)
	}
}

// A server that accepts and says nothing, then one that is not there.
func TestASilentServerDoesNotHangALook(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var held []net.Conn
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			held = append(held, conn)
		}
	}()
	address := listener.Addr().String()
	dsns := map[string]string{
		"postgres": "postgres://gate:s3cret@" + address + "/lessons?sslmode=disable",
		"mysql":    "gate:s3cret@tcp(" + address + ")/lessons",
	}
	sources := make(map[string]Source)
	for driver, dsn := range dsns {
		d := database{t: t, driver: driver, dsn: dsn, parameter: map[string]string{"postgres": "$1", "mysql": "?"}[driver]}
		sources[driver] = d.bySlot()
		for range connections + 2 {
			wantsDeadline(t, sources[driver])
		}
	}
	listener.Close()
	<-accepted
	for _, conn := range held {
		conn.Close()
	}
	for driver, s := range sources {
		_, err := s.Read(within(t, soon), "1")
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: a server that is gone gives %v, want an error without its password", driver, err)
		}
	}
}

func TestALookEndsWithItsContext(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database) {
		d.do("CREATE TABLE slots (slot int PRIMARY KEY, n int)")
		s := d.bySlot()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := s.Read(ended, "1"); !errors.Is(err, context.Canceled) {
			t.Errorf("read %+v (%v), want that it was cancelled", got, err)
		}
	})
}

func TestClosingAnswersLooksWithErrors(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database) {
		s := d.bySlot()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got, err := s.Read(t.Context(), "1"); err == nil {
			t.Errorf("read %+v from what is closed", got)
		}
		if c, ok := s.(io.Closer); !ok || c.Close() != nil {
			t.Error("closing twice is an error")
		}
	})
}
