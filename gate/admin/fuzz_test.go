package admin

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Whatever an operator sends, the answer is one that was written for it.
func FuzzPutSlot(f *testing.F) {
	f.Add("7", `{"capacity":8}`)
	f.Add("a/b", `{"capacity":null,"closed":true}`)
	f.Add("..", `{"opens_at":"2030-09-01T10:00:00+02:00"}`)
	f.Add("\x00\xff", `{"capacity":1e300}`)
	f.Add("", `{"closed":`)
	f.Fuzz(func(t *testing.T, slot, body string) {
		b := newBench(t, "")
		r := httptest.NewRequest("PUT", "http://localhost/", strings.NewReader(body))
		r.URL = &url.URL{Path: "/v1/slots/lessons/" + slot, RawPath: "/v1/slots/lessons/" + url.PathEscape(slot)}
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		b.server.http.Handler.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusOK:
			if _, ok := b.slots.slots[slot]; !ok || len(b.slots.slots) != 1 {
				t.Errorf("slot %q was not the one changed: %v", slot, b.slots.slots)
			}
		case http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge:
			if len(b.slots.changes) != 0 {
				t.Errorf("a refused request changed %v", b.slots.changes)
			}
		default:
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}
