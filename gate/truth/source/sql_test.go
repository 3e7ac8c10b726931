package source

import (
	"strings"
	"sync"
	"testing"
	"time"

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
				case <-time.After(time.Millisecond): // SQLite lets whoever writes on and on keep readers out
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
