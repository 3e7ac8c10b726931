package admin

import (
	"errors"
	"net/http"
	"time"
)

// Reloaded is what a reload did, for people.
type Reloaded struct {
	Revision    string   `json:"revision"`     // of the configuration in effect
	Changes     []string `json:"changes"`      // in effect
	NeedRestart []string `json:"need_restart"` // settings that a running gate cannot change
}

// lastReload is how the last reload went; the zero one: there was none.
type lastReload struct {
	at   time.Time
	done Reloaded
	err  error
}

// Reloaded notes how a reload went: what it did, or err, why the last good configuration
// stays.
func (m *Metrics) Reloaded(done Reloaded, err error) {
	m.lastReload.Store(&lastReload{at: time.Now(), done: done, err: err})
	if err != nil {
		m.reload.Set(0)
	} else {
		m.reload.Set(1)
	}
}

// reloadView is null in the status before the first reload.
type reloadView struct {
	At          time.Time `json:"at"`
	Success     bool      `json:"success"`
	Error       string    `json:"error"`
	NeedRestart []string  `json:"need_restart"`
}

func viewReload(last *lastReload) *reloadView {
	if last == nil {
		return nil
	}
	view := &reloadView{At: last.at.UTC(), Success: last.err == nil, NeedRestart: []string{}}
	if last.err != nil {
		view.Error = last.err.Error()
	} else if last.done.NeedRestart != nil {
		view.NeedRestart = last.done.NeedRestart
	}
	return view
}

var errNoReload = errors.New("this gate cannot reload its configuration")

// postReload answers when the configuration is in effect, or with what is wrong with it.
func (s *Server) postReload(w http.ResponseWriter, _ *http.Request) {
	if s.reload == nil {
		fail(w, http.StatusConflict, errNoReload.Error())
		return
	}
	done, err := s.reload()
	if err != nil {
		fail(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	if done.Changes == nil {
		done.Changes = []string{}
	}
	if done.NeedRestart == nil {
		done.NeedRestart = []string{}
	}
	answer(w, http.StatusOK, done)
}
