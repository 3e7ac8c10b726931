package redisstore

import (
	"context"

	"github.com/slotgate/slotgate/luascripts"
)

// reservation is what a hold that is about to be taken counts for in its pool.
type reservation struct {
	hold  string
	key   string // of the subject in the pool
	value string // what was written
}

// reserve counts a hold among what its subject has in the pool, where the pool asks for
// it; most 0: however many it has.
func (p *decideSteps) reserve(ctx context.Context, hold string, most int64) (full bool, err error) {
	d := p.d
	if !p.books() || d.MaxPerSubject == 0 || p.subject == "" {
		return false, nil
	}
	r := &reservation{hold: hold, key: p.keys.PoolSubject(d.Pool, p.subject)}
	this := p.nextCall()
	raw, err := p.run(ctx, &call{op: "decide", script: luascripts.Reserve,
		keys: []string{r.key, p.keys.PoolSubjectTombstone(r.key, this)},
		args: []any{hold, d.Units, most, millis(d.HoldTTL), p.at.retain, this}})
	if err != nil {
		return false, err
	}
	reply := newReply("decide", raw, 2)
	full, r.value = reply.flag(), reply.text()
	if r.value != "" {
		p.reserved = append(p.reserved, r)
	}
	return full, reply.end()
}

// unreserve takes a reservation back. One that stays lapses with the hold's time.
func (p *decideSteps) unreserve(ctx context.Context, r *reservation) {
	_, _ = p.run(ctx, &call{op: "decide", script: luascripts.Unreserve, keys: []string{r.key},
		args: []any{r.hold, r.value}})
}

// carryNotes tells the pool what has become of holds of its subjects.
func (s *Store) carryNotes(ctx context.Context, op string, at place, t news) error {
	for _, note := range t.notes {
		_, err := s.run(ctx, &call{op: op, script: luascripts.Note,
			keys: []string{s.keys.PoolSubject(at.pool, note.subject)},
			args: []any{note.hold, note.units, note.ttl, t.at, at.retain}})
		if err != nil {
			return err
		}
	}
	return nil
}
