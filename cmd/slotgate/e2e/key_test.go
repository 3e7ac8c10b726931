package e2e

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/gate/testbed"
)

func TestOneKeyIsOneRequestOfOnePrincipal(t *testing.T) {
	redis := testbed.Redis(t)
	inside, release := make(chan struct{}, 1), make(chan struct{})
	var once sync.Once
	backend := startLegacy(t, booking.Options{Style: booking.Conditional, Lessons: 3, Seats: 5, BeforeWrite: func() {
		once.Do(func() { inside <- struct{}{}; <-release })
	}})
	config := lessons(backend.url, redisStore(redis.Addr()), "", "capacity: 5", keyed)
	a, b := startGate(t, config), startGate(t, config)
	const key = "0123456789abcdef-key"
	ann := "Authorization: Bearer ann"

	first := make(chan answer, 1)
	go func() { first <- book(a.url, 1, "ann", "Idempotency-Key: "+key, ann) }()
	select {
	case <-inside:
	case a := <-first:
		t.Fatalf("it never reached the backend: %v", a)
	}
	expect(t, book(b.url, 1, "bob", "Idempotency-Key: "+key, ann), 422, "key-mismatch", "") // while it runs
	close(release)
	won := <-first
	expect(t, won, 201, "admitted", "booked")

	for name, try := range map[string]struct {
		got              answer
		status           int
		decision, result string
	}{
		"bare, other gate":      {book(b.url, 1, "ann", "Idempotency-Key: "+key, ann), 201, "replayed", "booked"},
		"quoted":                {book(a.url, 1, "ann", `Idempotency-Key: "`+key+`"`, ann), 201, "replayed", "booked"},
		"other body":            {book(a.url, 1, "bob", "Idempotency-Key: "+key, ann), 422, "key-mismatch", ""},
		"other lesson":          {book(b.url, 2, "ann", "Idempotency-Key: "+key, ann), 422, "key-mismatch", ""},
		"other principal":       {book(a.url, 1, "ann", "Idempotency-Key: "+key, "Authorization: Bearer eve"), 409, "duplicate", ""},
		"no principal":          {book(b.url, 1, "ann", "Idempotency-Key: "+key), 409, "duplicate", ""},
		"empty":                 {book(a.url, 1, "ann", "Idempotency-Key: "), 400, "key-invalid", ""},
		"256 characters":        {book(a.url, 1, "ann", "Idempotency-Key: "+strings.Repeat("k", 256)), 400, "key-invalid", ""},
		"not ASCII":             {book(a.url, 1, "ann", "Idempotency-Key: ключ"), 400, "key-invalid", ""},
		"sent twice, equal":     {book(a.url, 1, "ann", "Idempotency-Key: "+key, "Idempotency-Key: "+key), 400, "key-invalid", ""},
		"an unterminated quote": {book(a.url, 1, "ann", `Idempotency-Key: "`+key), 400, "key-invalid", ""},
	} {
		if try.got.status != try.status || try.got.header.Get("Gate-Decision") != try.decision || try.got.header.Get("Gate-Outcome") != try.result {
			t.Errorf("%s: got %v, want %d %s", name, try.got, try.status, try.decision)
		}
		if same := bytes.Equal(try.got.body, won.body); same != (try.status == 201) {
			t.Errorf("%s: shown the stored answer: %v", name, same)
		}
	}
	// A control character in a field is refused before any rule is asked.
	raw := rawSend(t, a.url, "POST /api/lessons/1/bookings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\nIdempotency-Key: a\x01b\r\n\r\n{\"student_id\":\"ann\"}")
	if !strings.HasPrefix(raw, "HTTP/1.1 400 ") {
		t.Errorf("control character: %q", raw)
	}
	if n := backend.Stats().Requests.Book; n != 1 {
		t.Errorf("the backend saw %d requests", n)
	}
}
