package booking

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
)

// succeed answers {"data": …} with status, or the envelope with code 0.
func (s *Server) succeed(w http.ResponseWriter, status int, data any) {
	s.stats.count(func(stats *Stats) { stats.Answers["ok"]++ })
	if s.options.Envelope {
		writeEnvelope(w, 0, "ok", data)
		return
	}
	writeJSON(w, status, struct {
		Data any `json:"data"`
	}{data})
}

// fail answers {"error", "message"} with the status of the failure, or the
// envelope with its code; data goes along if there is any. An error that is no
// failure is the database's: it is logged and told as errInternal.
func (s *Server) fail(w http.ResponseWriter, err error, data any) {
	var f *failure
	if !errors.As(err, &f) {
		s.options.Log.Error("legacybooking: database", "error", err)
		f = errInternal
	}
	s.stats.count(func(stats *Stats) { stats.Answers[f.name]++ })
	if f == errBusy {
		w.Header().Set("Retry-After", "1")
	}
	if s.options.Envelope {
		writeEnvelope(w, f.code, f.message, data)
		return
	}
	writeJSON(w, f.status, struct {
		Error   string `json:"error"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{f.name, f.message, data})
}

func writeEnvelope(w http.ResponseWriter, code int, message string, data any) {
	writeJSON(w, http.StatusOK, struct {
		Code    int    `json:"code"`
		Message string `json:"msg"`
		Data    any    `json:"data"`
	}{code, message, data})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The bodies are our own and encode; what fails is a client that left.
	_ = json.NewEncoder(w).Encode(body)
}

// setSession hands out a session as legacy systems do with every answer that
// matters. It is personal: nobody else may ever get it.
func setSession(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: "legacy_session", Value: rand.Text(), Path: "/", HttpOnly: true})
}
