package gate

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

func packed(t testing.TB, text string, writer func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var b bytes.Buffer
	w := writer(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipped(t testing.TB, text string) string {
	return packed(t, text, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
}

func deflated(t testing.TB, text string) string {
	return packed(t, text, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
}

// fieldsOf reads "Name: value" lines.
func fieldsOf(lines ...string) (fields []rules.Field) {
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		fields = append(fields, rules.Field{Name: name, Value: value})
	}
	return fields
}

func TestStoredAnswersInTheFormThatIsAccepted(t *testing.T) {
	const text, asJSON = `{"id":7}`, "Content-Type: application/json"
	const page, asHTML = "\r\n<!doctype html><p>Booked", "Content-Type: text/html; charset=UTF-8"
	zipped := gzipped(t, text)
	answer := func(body string, header ...string) decision.Answer {
		return decision.Answer{Status: 201, Header: fieldsOf(header...), Body: []byte(body)}
	}
	coded := answer(zipped, asJSON, "Content-Encoding: gzip", "Vary: Accept-Encoding", `ETag: "v1"`, "Digest: md5=x")
	const asIs, inflated, refused = "as it is", "inflated", "refused"
	part := answer("ab", "Content-Range: bytes 0-1/9")
	part.Status = 206
	for _, c := range []struct {
		stored  decision.Answer
		request []string
		want    string
	}{
		// Content codings.
		{coded, []string{"Accept-Encoding: gzip, deflate, br"}, asIs},
		{coded, []string{"accept-encoding: br", "Accept-Encoding: GZIP;q=0.5"}, asIs},
		{coded, []string{"Accept-Encoding: x-gzip"}, asIs},
		{coded, []string{"Accept-Encoding: *"}, asIs},
		{coded, nil, inflated},
		{coded, []string{"Accept-Encoding: "}, inflated},
		{coded, []string{"Accept-Encoding: identity"}, inflated},
		{coded, []string{"Accept-Encoding: br, zstd"}, inflated},
		{coded, []string{"Accept-Encoding: gzip;q=0, *"}, inflated},
		{coded, []string{"Accept-Encoding: *;q=0"}, inflated},
		{answer(deflated(t, text), asJSON, "Content-Encoding: deflate"), []string{"Accept-Encoding: gzip"}, inflated},
		{answer(text, asJSON, "Content-Encoding: identity"), nil, asIs},
		{answer(text, asJSON, "Content-Encoding: br"), []string{"Accept-Encoding: gzip"}, refused},
		{answer(text, asJSON, "Content-Encoding: br"), []string{"Accept-Encoding: gzip, br"}, asIs},
		{answer(zipped, asJSON, "Content-Encoding: gzip, gzip"), nil, refused},
		{answer(zipped, asJSON, "Content-Encoding: deflate", "Content-Encoding: gzip"), nil, refused},
		{answer(zipped[:len(zipped)-3], asJSON, "Content-Encoding: gzip"), nil, refused},
		{answer("not gzip", asJSON, "Content-Encoding: gzip"), nil, refused},
		{answer(gzipped(t, strings.Repeat("0", 4097)), "Content-Encoding: gzip"), nil, refused},
		{answer("", "Content-Encoding: gzip"), nil, asIs},
		// Media types.
		{answer(text, asJSON), []string{"Accept: application/json"}, asIs},
		{answer(text, asJSON), []string{"Accept: application/json, text/plain, */*"}, asIs},
		{answer(text, asJSON), []string{"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, asIs},
		{answer(text, asJSON), []string{"Accept: "}, asIs},
		{answer(text, asJSON), []string{"Accept: application/*"}, asIs},
		{answer(text, "Content-Type: Application/JSON; charset=utf-8"), []string{"Accept: application/vnd.api+json"}, asIs},
		{answer(text, asJSON), []string{"Accept: text/html"}, refused},
		{answer(text, asJSON), []string{"Accept: text/html, application/xhtml+xml", "Accept: image/png"}, refused},
		{answer(text, asJSON), []string{"Accept: */*, application/json;q=0"}, refused},
		{answer("<ok/>", "Content-Type: application/xml"), []string{"Accept: application/json"}, refused},
		{coded, []string{"Accept: text/html", "Accept-Encoding: gzip"}, refused},
		{coded, []string{"Accept: text/html"}, refused},
		{answer("", asJSON), []string{"Accept: text/html"}, asIs},
		{answer(page, asHTML), []string{"Accept: application/json"}, refused},
		{answer(page, asHTML), []string{"Accept: text/html"}, asIs},
		// Scripts that echo JSON under the server's default label, and no label at all.
		{answer(text, asHTML), []string{"Accept: application/json"}, asIs},
		{answer("OK", "Content-Type: text/plain"), []string{"Accept: application/json"}, asIs},
		{answer(text), []string{"Accept: text/html"}, asIs},
		// The gate's own.
		{answer(text, "Content-Type: application/problem+json"), []string{"Accept: text/html"}, asIs},
		// Parts.
		{part, nil, refused},
		{part, []string{"Range: bytes=0-1"}, asIs},
	} {
		got, ok := asAccepted(c.stored, fieldsOf(c.request...), 4096)
		r := &Reply{Answer: got}
		switch c.want {
		case refused:
			if ok || got.Body != nil {
				t.Errorf("%q for %q: given as %q", c.stored.Header, c.request, got.Body)
			}
		case asIs:
			if !ok || !bytes.Equal(got.Body, c.stored.Body) || len(got.Header) != len(c.stored.Header) {
				t.Errorf("%q for %q: %v %q %q, not as it is", c.stored.Header, c.request, ok, got.Header, got.Body)
			}
		case inflated:
			if !ok || string(got.Body) != text || field(r, "Content-Encoding") != "" || field(r, "Digest") != "" || field(r, "Content-Type") != "application/json" {
				t.Errorf("%q for %q: %v %q %q, not inflated", c.stored.Header, c.request, ok, got.Header, got.Body)
			}
			if tag := field(r, "ETag"); tag != "" && tag != `W/"v1"` {
				t.Errorf("the tag of the coded answer is given as %s", tag)
			}
		}
	}
}

// A replay is the first answer in content, whatever coding the first client took; what
// set a session with the first client is never in it.
func TestReplaysAndTwinsAreNegotiatedAnew(t *testing.T) {
	f := newFixture(t, "capacity: 9", keyed)
	who := []string{"Idempotency-Key: k", "Authorization: Bearer ann", "Accept-Encoding: gzip"}
	release, first := f.held(call{fields: who})
	plain := make(chan *Reply, 1)
	go func() { plain <- f.book(call{fields: who[:2]}) }()
	waitFor(t, func() bool { return f.waitingTwins() == 1 })
	body := gzipped(t, `{"id":7}`)
	release(answers(200, body, "Content-Type: application/json", "Content-Encoding: gzip", "Vary: Accept-Encoding",
		"Set-Cookie: PHPSESSID=victim; Path=/; HttpOnly", "Set-Cookie: csrf=abc", "X-CSRF-Token: abc", "Cache-Control: private, no-store"), nil)
	f.want(<-first, decision.DecisionAdmitted, 200)

	replies := map[string]*Reply{"twin": <-plain}
	replies["as stored"] = f.book(call{fields: who})
	replies["plain"] = f.book(call{fields: who[:2]})
	for name, r := range replies {
		want, coding := `{"id":7}`, ""
		if name == "as stored" {
			want, coding = body, "gzip"
		}
		f.want(r, decision.DecisionReplayed, 200)
		if string(r.Body) != want || field(r, "Content-Encoding") != coding || field(r, "Cache-Control") != "private, no-store" {
			t.Errorf("%s: %q %q", name, r.Header, r.Body)
		}
		if field(r, "Set-Cookie") != "" || field(r, "X-CSRF-Token") != "" {
			t.Errorf("%s: holds the first client's session: %q", name, r.Header)
		}
	}
	other := f.want(f.book(call{fields: append(who, "Accept: text/html")}), decision.DecisionDuplicate, 409)
	if bytes.Contains(other.Body, []byte(`"id":7`)) || other.Replayed {
		t.Fatalf("JSON is given to who takes pages only: %s", other.Body)
	}
	if f.backend.count() != 1 {
		t.Fatalf("the backend saw %d requests", f.backend.count())
	}
}
