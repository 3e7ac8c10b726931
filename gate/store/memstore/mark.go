package memstore

import (
	"time"

	"github.com/slotgate/slotgate/rules"
)

const (
	firstPause     = time.Second
	lastPause      = 30 * time.Second
	neverSentPause = time.Second
)

// mark is a slot's full mark: the backend said that so many units, or more, are
// not to be had. The zero mark is none.
type mark struct {
	units      int64
	pause      time.Duration
	until      int64  // when a lone probe may go
	probe      string // the attempt that is the lone probe, "" none
	probeLease int64
}

type standing uint8

const (
	free  standing = iota // the mark is no concern of the request
	full                  // it is
	probe                 // the request may be the lone probe
)

// stand tells how a request for so many units stands to the mark, and when that
// may change where it is full.
func (m *mark) stand(units, now int64) (standing, time.Duration) {
	switch {
	case m.units == 0 || units < m.units:
		return free, 0
	case m.probe != "" && m.probeLease > now:
		return full, time.Duration(m.probeLease - now)
	case m.until > now:
		return full, time.Duration(m.until - now)
	}
	return probe, 0
}

func (m *mark) elect(id string, lease int64) { m.probe, m.probeLease = id, lease }

// next lets the next probe go after a pause.
func (m *mark) next(now int64, pause time.Duration) {
	m.probe, m.probeLease = "", 0
	m.until = now + int64(pause)
}

// soldOut is what the backend said to an ordinary request, or to the probe.
func (m *mark) soldOut(units, now int64, byProbe bool) {
	switch {
	case m.units == 0:
		*m = mark{units: units, pause: firstPause}
		m.next(now, m.pause)
		return
	case byProbe:
		m.pause = min(2*m.pause, lastPause)
		m.next(now, m.pause)
	}
	m.units = min(m.units, units)
}

// probed is what the probe came back with, other than sold out. confirmed is
// whether its hold was, numeric whether the slot's capacity is a number.
func (m *mark) probed(outcome rules.Outcome, now int64, confirmed, numeric bool) {
	switch {
	case outcome == rules.Unknown:
		m.next(now, m.pause)
	case outcome == rules.NeverSent:
		m.next(now, neverSentPause)
	case confirmed && numeric:
		*m = mark{}
	default:
		m.next(now, 0)
	}
}
