package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/slotgate/slotgate/gate/store"
)

// problem is an RFC 9457 document; the status says all there is to say about the
// type, which therefore stays about:blank (section 4.2.1).
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func fail(w http.ResponseWriter, status int, detail string) {
	write(w, status, "application/problem+json", problem{"about:blank", http.StatusText(status), status, detail})
}

// failStore answers for a call that the store did not do.
func failStore(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, store.ErrNoSlot):
		fail(w, http.StatusNotFound, "this slot was never seen, or its idle state has been dropped")
	case errors.Is(err, store.ErrCursor):
		fail(w, http.StatusBadRequest, err.Error())
	case errors.Is(err, store.ErrNoHold):
		fail(w, http.StatusNotFound, "this slot has no such open or confirmed hold")
	default:
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, err.Error())
	}
}

// failTruth answers for a look that told nothing, or that the store did not take.
func failTruth(w http.ResponseWriter, err error) {
	var failure *store.Error
	switch {
	case errors.Is(err, store.ErrNoSlot):
		fail(w, http.StatusNotFound, "truth has no such slot")
	case errors.As(err, &failure):
		failStore(w, err)
	default:
		fail(w, http.StatusBadGateway, strings.Join(strings.Fields(err.Error()), " ")) // drivers write lines
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	write(w, status, "application/json", v)
}

// write encodes before it sends, so that the length is known and an answer is
// whole or not begun.
func write(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away has nobody to tell
}

// clip keeps what a caller sent short in what it is told.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
