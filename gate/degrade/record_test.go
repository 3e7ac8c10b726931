package degrade

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// anySettle draws every field that the type has, also those added after this test
// was written.
func anySettle(t *rapid.T) *store.Settle {
	s := new(store.Settle)
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		switch f.Interface().(type) {
		case string:
			f.SetString(rapid.String().Draw(t, name))
		case int64, time.Duration:
			f.SetInt(rapid.Int64().Draw(t, name))
		case bool:
			f.SetBool(rapid.Bool().Draw(t, name))
		case rules.Outcome, store.Action, store.TruthKind:
			f.SetUint(uint64(rapid.Uint8().Draw(t, name)))
		case []byte:
			if b := rapid.SliceOf(rapid.Byte()).Draw(t, name); len(b) > 0 {
				f.SetBytes(b)
			}
		case [32]byte:
			for k := range f.Len() {
				f.Index(k).SetUint(uint64(rapid.Uint8().Draw(t, name)))
			}
		default:
			t.Fatalf("no way to draw a %s: does the record hold it?", f.Type())
		}
	}
	return s
}

func TestASettlementComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anySettle(t)
		record := appendSettle([]byte("before"), want)[len("before"):]
		got, err := readSettle(record)
		if err != nil {
			t.Fatal(err)
		}
		clear(record) // nothing of it may be kept
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
		if size := newEntry(want, 1).size; int64(len(record)) > size {
			t.Fatalf("a record of %d bytes is more than the entry's size %d", len(record), size)
		}
	})
}

func TestARecordThatIsNotWholeIsRefused(t *testing.T) {
	record := appendSettle(nil, example(7))
	for n := range record {
		if s, err := readSettle(record[:n]); err == nil {
			t.Fatalf("%d of %d bytes were read as %+v", n, len(record), s)
		}
	}
	if _, err := readSettle(append(record, 0)); err == nil {
		t.Fatal("a byte too many was let pass")
	}
	record[0]++
	if _, err := readSettle(record); err == nil {
		t.Fatal("a later schema was read as this one")
	}
}

// A journal that the version before wrote is settled by this one.
func TestARecordOfTheFirstSchemaIsRead(t *testing.T) {
	want := example(7)
	w := fieldWriter{b: []byte{1}}
	settleFields(&w, want, 1)
	got, err := readSettle(w.b)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func FuzzReadSettle(f *testing.F) {
	f.Add(appendSettle(nil, example(1)))
	f.Add(appendSettle(nil, new(store.Settle)))
	f.Add([]byte{settleSchema, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, record []byte) {
		s, err := readSettle(record)
		if err != nil {
			return
		}
		again, err := readSettle(appendSettle(nil, s))
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Fatalf("%+v was written and read as %+v, %v", s, again, err)
		}
	})
}

func BenchmarkAppendSettle(b *testing.B) {
	s := example(1)
	var record []byte
	for b.Loop() {
		record = appendSettle(record[:0], s)
	}
	b.SetBytes(int64(len(record)))
}

func BenchmarkReadSettle(b *testing.B) {
	record := appendSettle(nil, example(1))
	b.SetBytes(int64(len(record)))
	for b.Loop() {
		if _, err := readSettle(record); err != nil {
			b.Fatal(err)
		}
	}
}
