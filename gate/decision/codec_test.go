package decision

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/rules"
)

func stored() *Stored {
	return &Stored{
		Answer: Answer{
			Status: 201,
			Header: []rules.Field{
				{Name: "Content-Type", Value: "application/json"},
				{Name: "Location", Value: "/api/bookings/7"},
				{Name: "ETag", Value: `"a"`},
				{Name: "X-Booking", Value: ""},
			},
			Body: []byte(`{"id":7}`),
		},
		Outcome:     rules.Booked,
		Fingerprint: [32]byte{1, 2, 3},
	}
}

func TestStoredAnswerComesBackAsItWas(t *testing.T) {
	want := stored()
	got, err := DecodeStored(EncodeStored(want, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != want.Status || got.Outcome != want.Outcome || got.Fingerprint != want.Fingerprint || got.Bodyless ||
		!slices.Equal(got.Header, want.Header) || !bytes.Equal(got.Body, want.Body) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestFieldsOfOneClientAreNotStored(t *testing.T) {
	for _, name := range []string{
		"Set-Cookie", "set-cookie2", "WWW-Authenticate", "Authorization", "Authentication-Info", "Proxy-Authenticate",
		"X-Auth-Token", "X-CSRF-Token", "PHP-Session-Id", "X-Api-Key", "X-ApiKey", "X_API_KEY", "X-JWT", "X-Jwt-Assertion", "X-Bearer", "X-Credentials", "X-Password", "Date", "Age", "Connection", "Keep-Alive",
		"Transfer-Encoding", "TE", "Trailer", "Upgrade", "Via", "RateLimit", "RateLimit-Policy", "X-RateLimit-Remaining",
		"Gate-Decision", "Idempotent-Replayed", "X-Request-Id", "Content-Length",
	} {
		s := stored()
		s.Header = append(s.Header, rules.Field{Name: name, Value: "secret-value"})
		if packed := EncodeStored(s, 1<<20); bytes.Contains(packed, []byte("secret-value")) {
			t.Errorf("%s was stored", name)
		}
	}
}

func TestLargeBodyIsKeptWithoutIt(t *testing.T) {
	s := stored()
	s.Body = []byte(strings.Repeat("x", 100))
	got, err := DecodeStored(EncodeStored(s, 99))
	if err != nil {
		t.Fatal(err)
	}
	if !got.Bodyless || len(got.Body) != 0 || got.Status != 201 {
		t.Fatalf("got %+v", got)
	}
	for _, f := range got.Header {
		if f.Name == "Content-Type" {
			t.Error("a missing body still has a Content-Type")
		}
	}
	if got, _ := DecodeStored(EncodeStored(s, 100)); got.Bodyless {
		t.Error("a body of exactly the limit was dropped")
	}
}

func FuzzDecodeStored(f *testing.F) {
	f.Add(EncodeStored(stored(), 1<<20))
	f.Add([]byte{1})
	f.Add(append(EncodeStored(&Stored{Answer: Answer{Status: 200}}, 0)[:37], 0xff, 0xff, 0xff, 0xff, 0x0f))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeStored(b)
		if err != nil {
			return
		}
		again, err := DecodeStored(EncodeStored(s, int64(len(b))))
		if err != nil {
			t.Fatalf("encoded again it cannot be read: %v", err)
		}
		if again.Status != s.Status || !bytes.Equal(again.Body, s.Body) && !s.Bodyless {
			t.Fatalf("got %+v, want %+v", again, s)
		}
	})
}

func BenchmarkEncodeStored(b *testing.B) {
	s := &Stored{Answer: Answer{Status: 201, Body: []byte(`{"id":123}`), Header: []rules.Field{
		{Name: "Server", Value: "nginx"}, {Name: "Date", Value: "Mon, 30 Nov 2026 12:00:00 GMT"},
		{Name: "Content-Type", Value: "application/json"}, {Name: "Content-Length", Value: "10"},
		{Name: "X-Powered-By", Value: "PHP/8.4"}, {Name: "Location", Value: "/bookings/123"},
	}}}
	b.ReportAllocs()
	for b.Loop() {
		EncodeStored(s, 1<<20)
	}
}
