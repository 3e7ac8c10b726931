package source

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

func TestValuesOfEveryType(t *testing.T) {
	type test struct {
		expression string
		want       Value
		says       string // an error that says so
	}
	common := []test{
		{"7", left(7), ""},
		{"-7", left(-7), ""},
		{"0", left(0), ""},
		{"NULL", Value{None: true}, ""},
		{"9223372036854775807", left(9223372036854775807), ""},
		{"-9223372036854775807", left(-9223372036854775807), ""},
		{"CAST('7' AS char(10))", left(7), ""},
		{"'12'", left(12), ""},
		{"'-12.00'", left(-12), ""},
		{"'1e3'", left(1000), ""},
		{"CAST(7.00 AS decimal(10,2))", left(7), ""},
		{"7.5", Value{}, "7.5"},
		{"'7.5'", Value{}, "7.5"},
		{"'seven'", Value{}, `"seven"`},
		{"''", Value{}, "whole number"},
		{"'99999999999999999999'", Value{}, "64 bits"},
		{"1e300", Value{}, "64 bits"},
	}
	own := map[string][]test{
		"postgres": {
			{"7::smallint", left(7), ""},
			{"7::real", left(7), ""},
			{"7::float8", left(7), ""},
			{"7.5::float8", Value{}, "7.5"},
			{"'NaN'::float8", Value{}, "NaN"},
			{"'Infinity'::float8", Value{}, "Inf"},
			{"'NaN'::numeric", Value{}, "NaN"},
			{"7.00::numeric", left(7), ""},
			{"9223372036854775808::numeric", Value{}, "64 bits"},
			{"99999999999999999999.5::numeric", Value{}, "whole number"},
			{"sum(7::bigint)", left(7), ""}, // numeric
			{"true", Value{}, "true"},
			{"now()", Value{}, "whole number"},
			{"'{7}'::int[]", Value{}, "whole number"},
			{"'x'::text::int", Value{}, "22P02"}, // of the data, not of the slot
			{"1/0", Value{}, "22012"},
		},
		"mysql": {
			{"CAST(7 AS unsigned)", left(7), ""},
			{"CAST(18446744073709551615 AS unsigned)", Value{}, "64 bits"},
			{"CAST(7 AS double)", left(7), ""},
			{"SUM(7)", left(7), ""}, // decimal
			{"7 = 7", left(1), ""},
			{"CAST(7.000 AS decimal(20,3))", left(7), ""},
			{"NOW()", Value{}, "whole number"},
		},
		"sqlite": {
			{"7.0", left(7), ""},
			{"SUM(7)", left(7), ""},
			{"x'37'", left(7), ""}, // the text 7 as a blob
			{"9007199254740994.0", Value{}, "64 bits"},
		},
	}
	onEachDatabase(t, func(t *testing.T, d database) {
		d.do("CREATE TABLE slots (slot varchar(20) PRIMARY KEY)", "INSERT INTO slots VALUES ('a')")
		for _, test := range append(common, own[d.driver]...) {
			s := d.source("SELECT " + test.expression + " FROM slots WHERE slot = " + d.parameter)
			got, err := s.Read(within(t, soon), "a")
			if got != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s gives %+v (%v), want %+v and an error with %q", test.expression, got, err, test.want, test.says)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "truth: sql.query: ") {
				t.Errorf("%s: error %q does not say where", test.expression, err)
			}
		}
	})
}

func TestMeansBookedIsReadInOneSnapshot(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database) {
		d.do("CREATE TABLE slots (slot int PRIMARY KEY, total int)", "CREATE TABLE seats (slot int, n int)",
			"INSERT INTO slots VALUES (1, 10), (2, 0), (3, NULL), (4, -1)", "INSERT INTO seats VALUES (1, 3), (1, 4), (2, 1)")
		booked := "SELECT COALESCE(SUM(n), 0) FROM seats WHERE slot = " + d.parameter
		byQuery := d.source(booked, func(c *rules.TruthConfig) {
			c.SQL.Means = rules.MeansBooked
			c.SQL.Total.Query = "SELECT total FROM slots WHERE slot = " + d.parameter
		})
		for slot, want := range map[string]Value{
			"1": {N: 3, Total: 10}, "2": {N: -1, Total: 0}, "3": {None: true}, "9": missing, "01": missing, "abc": missing,
		} {
			if got := read(t, byQuery, slot); got != want {
				t.Errorf("slot %s is %+v, want %+v", slot, got, want)
			}
		}
		if got, err := byQuery.Read(t.Context(), "4"); err == nil || !strings.Contains(err.Error(), "total of -1") {
			t.Errorf("a total of -1 gives %+v (%v), want an error", got, err)
		}
		byNumber := d.source(booked, func(c *rules.TruthConfig) { c.SQL.Means, c.SQL.Total.Units = rules.MeansBooked, 12 })
		if got, want := read(t, byNumber, "1"), (Value{N: 5, Total: 12}); got != want {
			t.Errorf("slot 1 is %+v, want %+v", got, want)
		}
		d.do("UPDATE seats SET n = -9")
		if got, err := byNumber.Read(t.Context(), "1"); err == nil || !strings.Contains(err.Error(), "-18 units booked") {
			t.Errorf("fewer than none booked gives %+v (%v), want an error", got, err)
		}
		d.do("DELETE FROM seats")

		// Both are changed in one transaction, so that 10 are always left.
		stop := make(chan struct{})
		var writer sync.WaitGroup
		writer.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				tx, err := d.Begin()
				if err != nil {
					t.Error(err)
					return
				}
				for _, change := range []string{"UPDATE slots SET total = total + 1 WHERE slot = 1", "INSERT INTO seats VALUES (1, 1)"} {
					if _, err := tx.Exec(change); err != nil && !busy(err) {
						t.Error(err)
					} else if err != nil {
						break
					}
				}
				if err := tx.Commit(); err != nil && !busy(err) {
					t.Error(err)
				}
			}
		})
		deadline := time.Now().Add(500 * time.Millisecond)
		for reads := 0; time.Now().Before(deadline) || reads < 20; reads++ {
			if got := read(t, byQuery, "1"); got.N != 10 {
				t.Errorf("read %+v, want 10 left in every snapshot", got)
				break
			}
		}
		close(stop)
		writer.Wait()
	})
}

// busy: SQLite's writer meets a reader.
func busy(err error) bool { return strings.Contains(err.Error(), "SQLITE_BUSY") }

func TestMeansCapacityIsTheTotal(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database) {
		d.do("CREATE TABLE slots (slot int PRIMARY KEY, n int)", "INSERT INTO slots VALUES (1, 10), (2, -1)")
		s := d.source("SELECT n FROM slots WHERE slot = "+d.parameter, func(c *rules.TruthConfig) { c.SQL.Means = rules.MeansCapacity })
		if got, want := read(t, s, "1"), (Value{N: 10, Total: 10}); got != want {
			t.Errorf("slot 1 is %+v, want %+v", got, want)
		}
		if got, err := s.Read(t.Context(), "2"); err == nil || !strings.Contains(err.Error(), "capacity of -1") {
			t.Errorf("a capacity of -1 gives %+v (%v), want an error", got, err)
		}
	})
}

func TestAQueryGivesOneRowOfOneColumn(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database) {
		d.do("CREATE TABLE slots (slot int, n int, m int)", "INSERT INTO slots VALUES (1, 10, 5), (1, 11, 5), (2, 1, 2)")
		if got, err := d.bySlot().Read(t.Context(), "1"); err == nil || !strings.Contains(err.Error(), "several rows") {
			t.Errorf("two rows give %+v (%v), want an error", got, err)
		}
		two := d.source("SELECT n, m FROM slots WHERE slot = " + d.parameter)
		if got, err := two.Read(t.Context(), "2"); err == nil || !strings.Contains(err.Error(), "2 columns (n, m)") {
			t.Errorf("two columns give %+v (%v), want an error that names them", got, err)
		}
		absent := d.source("SELECT n FROM nowhere WHERE slot = " + d.parameter)
		if got, err := absent.Read(t.Context(), "2"); err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("no table gives %+v (%v), want an error that names it", got, err)
		}
	})
}

func TestASourceCannotWrite(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database) {
		d.do("CREATE TABLE slots (slot int PRIMARY KEY, n int)", "INSERT INTO slots VALUES (1, 10)")
		writes := []string{
			"UPDATE slots SET n = 99 WHERE slot = ", "DELETE FROM slots WHERE slot = ", "DELETE FROM slots WHERE slot = ? RETURNING n -- ",
		}
		if d.driver == "postgres" {
			d.do("CREATE FUNCTION take(s int) RETURNS int LANGUAGE sql AS 'UPDATE slots SET n = 99 WHERE slot = s RETURNING n'")
			writes = []string{
				"UPDATE slots SET n = 99 WHERE slot = $1 RETURNING n -- ", "SELECT take(slot) FROM slots WHERE slot = ",
				"WITH gone AS (DELETE FROM slots RETURNING n) SELECT n FROM gone WHERE 1 = ",
			}
		}
		for _, write := range writes {
			if got, err := d.source(write+d.parameter).Read(within(t, soon), "1"); err == nil {
				t.Errorf("%s is run and gives %+v", write, got)
			}
		}
		if got := read(t, d.bySlot(), "1"); got != left(10) {
			t.Errorf("after that slot 1 is %+v, want 10 left", got)
		}
	})
}

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

func TestErrorsKeepThePassword(t *testing.T) {
	pg, maria := testbed.Postgres(t), testbed.MariaDB(t)
	host := func(dsn, before, after string) string {
		_, rest, _ := strings.Cut(dsn, before)
		host, _, _ := strings.Cut(rest, after)
		return host
	}
	pgHost, mariaHost := host(pg.DSN(), "@", "/"), host(maria.DSN(), "(", ")")
	for _, test := range []struct{ driver, dsn string }{
		{"postgres", "postgres://nobody:s3cret@" + pgHost + "/nowhere"},
		{"postgres", "host=127.0.0.1 port=1 user=nobody password=s3cret dbname=x"},
		{"postgres", "postgres://nobody:s3cret@" + pgHost + ":x/nowhere"},
		{"postgres", "postgres://nobody:s3cret@host:99999/nowhere?sslmode=s3cret"},
		{"postgres", "password=s3cret host"},
		{"mysql", "nobody:s3cret@tcp(" + mariaHost + ")/nowhere"},
		{"mysql", "nobody:s3cret@tcp(127.0.0.1:1)/nowhere"},
		{"mysql", "nobody:s3cret@tcp(127.0.0.1:1"},
		{"mysql", "s3cret"},
		{"mysql", "nobody:x@tcp(127.0.0.1:1)/x?parseTime=s3cret"},
		{"mysql", "nobody:x@tcp(127.0.0.1:1)/x?tls=s3cret"},
		{"mysql", "nobody:x@tcp(127.0.0.1:1)/x?loc=s3cret"},
		{"sqlite", ":memory:"},
		{"sqlite", "file::memory:"},
		{"sqlite", "file:x?mode=memory"},
		{"sqlite", ""},
		{"sqlite", "x.db?_pragma=%zzs3cret"},
		{"sqlite", t.TempDir() + "/missing.db"},
		{"oracle", "s3cret"},
	} {
		parameter := map[bool]string{true: "$1", false: "?"}[test.driver == "postgres"]
		s, err := Open(&rules.TruthConfig{
			SQL:     &rules.SQLSource{Driver: test.driver, DSN: test.dsn, Query: "SELECT n FROM slots WHERE slot = " + parameter, Means: rules.MeansRemaining},
			Timeout: time.Second,
		}, Options{})
		if err == nil {
			_, err = s.Read(within(t, soon), "1")
			s.Close()
		}
		if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.HasPrefix(err.Error(), "truth: ") {
			t.Errorf("%s %q gives %v, want an error without the password", test.driver, test.dsn, err)
		}
	}
}

func TestSQLiteTakesPathsAndURIs(t *testing.T) {
	d := databases["sqlite"](t)
	d.do("PRAGMA journal_mode = WAL", "CREATE TABLE slots (slot text PRIMARY KEY, n int)", "INSERT INTO slots VALUES ('a', 7)")
	plain := t.TempDir() + "/plain.db"
	d.do("VACUUM INTO '" + plain + "'")
	for _, dsn := range []string{d.dsn, plain, "file:" + plain, plain + "?_pragma=cache_size(100)", "file:" + plain + "?mode=rwc", "file:" + plain + "?mode=ro&immutable=1"} {
		d.dsn = dsn
		if got := read(t, d.bySlot(), "a"); got != left(7) {
			t.Errorf("%s: slot a is %+v, want 7 left", dsn, got)
		}
	}
	d.dsn = t.TempDir() + "/new.db"
	if got, err := d.bySlot().Read(t.Context(), "a"); err == nil {
		t.Errorf("read %+v from a file that is not there", got)
	}
	if _, err := os.Stat(d.dsn); !os.IsNotExist(err) {
		t.Errorf("a look makes %s (%v)", d.dsn, err)
	}
}

// A database in memory has no mode=ro.
func TestASharedSQLiteInMemoryCannotBeWritten(t *testing.T) {
	d := database{t: t, driver: "sqlite", dsn: "file:lessons?mode=memory&cache=shared", parameter: "?"}.open("sqlite")
	d.do("CREATE TABLE slots (slot text PRIMARY KEY, n int)", "INSERT INTO slots VALUES ('a', 7)")
	if got := read(t, d.bySlot(), "a"); got != left(7) {
		t.Errorf("slot a is %+v, want 7 left", got)
	}
	if got, err := d.source("UPDATE slots SET n = 99 WHERE slot = ? RETURNING n").Read(t.Context(), "a"); err == nil {
		t.Errorf("an UPDATE is run and gives %+v", got)
	}
}

// As a pooler between us and the database may ask for.
func TestPostgresWithoutNamedStatements(t *testing.T) {
	d := databases["postgres"](t)
	d.do("CREATE TABLE slots (slot int PRIMARY KEY, n int)", "INSERT INTO slots VALUES (7, 70)")
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		with := d
		with.dsn += "&default_query_exec_mode=" + mode
		s := with.bySlot()
		for range 2 {
			for slot, want := range map[string]Value{"7": left(70), "007": missing, "abc": missing, "8": missing, "'": missing} {
				if got := read(t, s, slot); got != want {
					t.Errorf("%s: slot %s is %+v, want %+v", mode, slot, got, want)
				}
			}
		}
	}
}

func TestBookingsAreListed(t *testing.T) {
	created := map[string]string{"postgres": "timestamptz", "mysql": "datetime(3)", "sqlite": "text"}
	onEachDatabase(t, func(t *testing.T, d database) {
		d.do("CREATE TABLE bookings (id int, slot int, subject varchar(50), made "+created[d.driver]+")",
			"INSERT INTO bookings VALUES (1, 7, 'ann', '2026-11-29 10:00:00'), (2, 7, 'bob', '2026-11-29 10:00:01.5'), (3, 8, 'ann', NULL)")
		list := func(query string) Source {
			return d.source("SELECT 1 FROM bookings WHERE slot = "+d.parameter, func(c *rules.TruthConfig) {
				c.Bookings = &rules.BookingsConfig{Query: query + d.parameter + " ORDER BY id"}
			})
		}
		s := list("SELECT id, subject, made FROM bookings WHERE slot = ")
		got, err := s.(Lister).Bookings(within(t, soon), "7")
		ten := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
		if err != nil || len(got) != 2 || got[0].ID != "1" || got[0].Subject != "ann" || !got[0].At.Equal(ten) ||
			got[1].ID != "2" || got[1].Subject != "bob" || !got[1].At.Equal(ten.Add(1500*time.Millisecond)) {
			t.Errorf("bookings are %+v (%v)", got, err)
		}
		for slot, want := range map[string]int{"8": 1, "9": 0, "07": 0, "abc": 0, "7\x00": 0, "7\xff": 0} {
			got, err := s.(Lister).Bookings(within(t, soon), slot)
			if err != nil || len(got) != want || want == 1 && !got[0].At.IsZero() {
				t.Errorf("slot %q has the bookings %+v (%v), want %d", slot, got, err, want)
			}
		}
		for subject, want := range map[string]bool{"ann": true, "bob": true, "Ann": false, "ann ": false, "cid": false, "": false} {
			if got, err := s.(Looker).Booked(within(t, soon), "7", subject); got != want || err != nil {
				t.Errorf("%q has the slot: %v (%v), want %v", subject, got, err, want)
			}
		}
		short, err := list("SELECT slot, id FROM bookings WHERE slot = ").(Lister).Bookings(within(t, soon), "8")
		if err != nil || len(short) != 1 || short[0] != (Booking{ID: "8", Subject: "3"}) {
			t.Errorf("two columns give %+v (%v), want numbers as text", short, err)
		}
		for query, says := range map[string]string{
			"SELECT id FROM bookings WHERE slot = ":                      "1 columns",
			"SELECT id, subject, made, slot FROM bookings WHERE slot = ": "4 columns",
			"SELECT id, subject, subject FROM bookings WHERE slot = ":    `"ann"`,
			"SELECT id, nothing FROM bookings WHERE slot = ":             "nothing",
		} {
			got, err := list(query).(Lister).Bookings(within(t, soon), "7")
			if err == nil || !strings.HasPrefix(err.Error(), "truth: bookings.query: ") || !strings.Contains(err.Error(), says) {
				t.Errorf("%s gives %+v (%v), want an error with %s", query, got, err, says)
			}
			if booked, err := list(query).(Looker).Booked(within(t, soon), "7", "ann"); booked || err == nil {
				t.Errorf("%s: booked is %v (%v), want the error", query, booked, err)
			}
		}
	})
}

func TestNoBookingsNoLister(t *testing.T) {
	d := databases["sqlite"](t)
	s := d.bySlot()
	if _, ok := s.(Lister); ok {
		t.Error("a source without bookings says that it lists them")
	}
	if _, ok := s.(Looker); ok {
		t.Error("a source without bookings says that it looks them up")
	}
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
