package e2e

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

func TestOneKeyIsOneRequestOfOnePrincipal(t *testing.T) {
	redis := testbed.Redis(t)
	inside, release := make(chan struct{}, 1), make(chan struct{})
	var once sync.Once
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 3, Seats: 5, BeforeWrite: func() {
		once.Do(func() { inside <- struct{}{}; <-release })
	}})
	config := stage.Lessons(backend.URL, stage.RedisStore(redis.Addr()), "", "capacity: 5", stage.Keyed)
	a, b := stage.StartGate(t, config), stage.StartGate(t, config)
	const key = "0123456789abcdef-key"
	ann := "Authorization: Bearer ann"

	first := make(chan stage.Answer, 1)
	go func() { first <- stage.Book(a.URL, 1, "ann", "Idempotency-Key: "+key, ann) }()
	select {
	case <-inside:
	case a := <-first:
		t.Fatalf("it never reached the backend: %v", a)
	}
	stage.Expect(t, stage.Book(b.URL, 1, "bob", "Idempotency-Key: "+key, ann), 422, "key-mismatch", "") // while it runs
	close(release)
	won := <-first
	stage.Expect(t, won, 201, "admitted", "booked")

	for name, try := range map[string]struct {
		got              stage.Answer
		status           int
		decision, result string
	}{
		"bare, other gate":      {stage.Book(b.URL, 1, "ann", "Idempotency-Key: "+key, ann), 201, "replayed", "booked"},
		"quoted":                {stage.Book(a.URL, 1, "ann", `Idempotency-Key: "`+key+`"`, ann), 201, "replayed", "booked"},
		"other body":            {stage.Book(a.URL, 1, "bob", "Idempotency-Key: "+key, ann), 422, "key-mismatch", ""},
		"other lesson":          {stage.Book(b.URL, 2, "ann", "Idempotency-Key: "+key, ann), 422, "key-mismatch", ""},
		"other principal":       {stage.Book(a.URL, 1, "ann", "Idempotency-Key: "+key, "Authorization: Bearer eve"), 409, "duplicate", ""},
		"no principal":          {stage.Book(b.URL, 1, "ann", "Idempotency-Key: "+key), 409, "duplicate", ""},
		"empty":                 {stage.Book(a.URL, 1, "ann", "Idempotency-Key: "), 400, "key-invalid", ""},
		"256 characters":        {stage.Book(a.URL, 1, "ann", "Idempotency-Key: "+strings.Repeat("k", 256)), 400, "key-invalid", ""},
		"not ASCII":             {stage.Book(a.URL, 1, "ann", "Idempotency-Key: ключ"), 400, "key-invalid", ""},
		"sent twice, equal":     {stage.Book(a.URL, 1, "ann", "Idempotency-Key: "+key, "Idempotency-Key: "+key), 400, "key-invalid", ""},
		"an unterminated quote": {stage.Book(a.URL, 1, "ann", `Idempotency-Key: "`+key), 400, "key-invalid", ""},
	} {
		if try.got.Status != try.status || try.got.Header.Get("Gate-Decision") != try.decision || try.got.Header.Get("Gate-Outcome") != try.result {
			t.Errorf("%s: got %v, want %d %s", name, try.got, try.status, try.decision)
		}
		if same := bytes.Equal(try.got.Body, won.Body); same != (try.status == 201) {
			t.Errorf("%s: shown the stored answer: %v", name, same)
		}
	}
	// A control character in a field is refused before any rule is asked.
	raw := stage.RawSend(t, a.URL, "POST /api/lessons/1/bookings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\nIdempotency-Key: a\x01b\r\n\r\n{\"student_id\":\"ann\"}")
	if !strings.HasPrefix(raw, "HTTP/1.1 400 ") {
		t.Errorf("control character: %q", raw)
	}
	if n := backend.Stats().Requests.Book; n != 1 {
		t.Errorf("the backend saw %d requests", n)
	}
}
