package source

import (
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/rules"
)

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

func TestBookingsAreSpelledAsTheAPIWould(t *testing.T) {
	d := databases["postgres"](t)
	d.do("CREATE TABLE bookings (slot int, id uuid, subject numeric, made date, ok boolean, n float8)",
		"INSERT INTO bookings VALUES (7, '0f8fad5b-d9cb-469f-a165-70867728950e', 12345678901234567890, '2026-11-29', true, 20000000)")
	for columns, want := range map[string]Booking{
		"id, subject, made": {
			ID: "0f8fad5b-d9cb-469f-a165-70867728950e", Subject: "12345678901234567890", At: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC),
		},
		"ok, n":                     {ID: "true", Subject: "20000000"},
		"subject, NULL, 1764374400": {ID: "12345678901234567890", At: time.Unix(1764374400, 0)},
	} {
		s := d.source("SELECT 1 FROM bookings WHERE slot = $1", func(c *rules.TruthConfig) {
			c.Bookings = &rules.BookingsConfig{Query: "SELECT " + columns + " FROM bookings WHERE slot = $1"}
		})
		got, err := s.(Lister).Bookings(within(t, soon), "7")
		if err != nil || len(got) != 1 || got[0].ID != want.ID || got[0].Subject != want.Subject || !got[0].At.Equal(want.At) {
			t.Errorf("%s gives %+v (%v), want %+v", columns, got, err, want)
		}
	}
}
