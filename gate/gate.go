package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/degrade"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/seal"
	"github.com/slotgate/slotgate/rules"
)

// Options are the parts a gate is made of. All but Truth and Tracer are required.
type Options struct {
	Config  *rules.Config
	Set     *rules.Set
	Store   store.Store
	Backend Backend
	Truth   Truth // nil: no pool has a source
	Meter   Meter
	Logger  *slog.Logger
	Tracer  Tracer // nil: nobody traces
}

// Gate decides, forwards and settles. It is safe for concurrent use.
type Gate struct {
	book    atomic.Pointer[rulebook]
	store   *degrade.Guard
	journal string         // store.journal
	local   *degrade.Local // in place of the store while it is away
	backlog *degrade.Backlog
	back    *degrade.Recovery
	meter   Meter
	log     *slog.Logger
	tracer  Tracer // nil: nobody traces
	lines   decisionLog
	idKeys  idKeys
	started time.Time
	// strangers bounds how often the log says that truth did not have a slot that
	// was booked.
	strangers rate.Sometimes

	rejects *rejects
	turns   turns

	switching sync.Mutex // held while modes or rules are changed
	looks     looks      // that requests in shadow have begun
	strays    *tally     // of requests in shadow that may mean several rules
	refused   *refusals  // bookings, by slot

	reloads sync.WaitGroup
	closed  chan struct{}
	closing sync.Once
}

// New makes a gate. Close ends its background work.
func New(o Options) (*Gate, error) {
	if o.Config == nil || o.Set == nil || o.Store == nil || o.Backend == nil || o.Meter == nil || o.Logger == nil {
		return nil, errors.New("gate: every option but Truth and Tracer is required")
	}
	keys, err := seal.New(o.Config.Store.EncryptKey, o.Config.Store.EncryptOldKeys)
	if err != nil {
		return nil, fmt.Errorf("store.encrypt_key: %w", err)
	}
	g := &Gate{
		store:   degrade.NewGuard(o.Store, o.Config.Store.Breaker),
		journal: o.Config.Store.Journal,
		meter:   o.Meter,
		log:     o.Logger,
		tracer:  o.Tracer,
		lines:   newDecisionLog(o.Logger),
		idKeys:  idKeys{store: o.Store},
		started: time.Now(),

		strangers: rate.Sometimes{First: 1, Interval: time.Minute},
		closed:    make(chan struct{}),
		strays:    newTally(),
		rejects:   newRejects(),
		turns:     newTurns(),
		refused:   newRefusals(),
	}
	g.book.Store(newRulebook(Rules{Config: o.Config, Set: o.Set, Backend: o.Backend, Truth: o.Truth}, nil))
	g.local = degrade.NewLocal()
	g.learn(o.Set)
	g.back = degrade.NewRecovery(g.store, o.Logger)
	if g.backlog, err = degrade.OpenBacklog(o.Config.Store.Journal, keys, g.back.Settle, g.noteSettled, o.Logger); err != nil {
		_ = g.local.Close()
		return nil, fmt.Errorf("store.journal: %w", err)
	}
	g.back.Start(g.backlog)
	return g, nil
}

// Close gives waiting settlements until ctx ends, then stops. It does not close
// the store. It may be called twice.
func (g *Gate) Close(ctx context.Context) {
	if left := g.backlog.Close(ctx); left > 0 && !g.isClosed() {
		if g.journal == "" {
			g.log.Warn("stopped before the store took every settlement; their holds lapse", "left", left)
		} else {
			g.log.Warn("stopped before the store took every settlement; the journal keeps the rest for the next start", "left", left)
		}
	}
	g.back.Close()
	g.closing.Do(func() { close(g.closed) })
	g.looks.all.Wait()
	g.reloads.Wait()
	for _, r := range g.book.Load().routes {
		r.passthrough.Close()
	}
	_ = g.local.Close()
	g.lines.limiter.Close()
}

func (g *Gate) isClosed() bool {
	select {
	case <-g.closed:
		return true
	default:
		return false
	}
}

// Route finds the rule of a request from its head, and from the body of a form whose
// _method field may decide. A nil Match.Rule and a nil
// Reply mean that no rule is for it; off that one is, but it does not enforce: the
// request is to be passed on, untouched but for what req.Shadow, if set, has to add. A
// Reply is the answer to a request that could be read in two ways.
func (g *Gate) Route(req *Request) (m rules.Match, off bool, reply *Reply) {
	book := g.begin()
	defer func() {
		if req.Shadow == nil && (m.Rule == nil || reply != nil) {
			book.end() // else Serve does, or Shadow.End
		}
	}()
	now := book.modes.Load()
	g.takeIDs(now, req)
	m, mode, refusal := now.find(&req.Request)
	if mode == modeEnforce && m.NeedsBody {
		if reply = g.readToRoute(book, req, m); reply != nil {
			return m, false, reply
		}
		m, mode, refusal = now.find(&req.Request)
	}
	switch mode {
	case modeShadow:
		req.Shadow = g.shadow(now, req, m, refusal)
		return rules.Match{}, true, nil
	case modeOff:
		return rules.Match{}, true, nil
	}
	if refusal == nil {
		req.under = book
		return m, false, nil
	}
	return m, false, g.refuseToRoute(book, req, m, refusal)
}

// readToRoute reads a body that tells the rule; a reply if it cannot be read. It and the
// next are apart from Route for their journeys' sake, which are large: on the stack of each
// connection they would stay for as long as it is open.
func (g *Gate) readToRoute(book *rulebook, req *Request, m rules.Match) *Reply {
	j := journey{gate: g, book: book, req: req, match: m, began: time.Now()}
	if reply := j.readBody(); reply != nil {
		return j.count(reply)
	}
	return nil
}

// refuseToRoute is the reply to what could be read in two ways.
func (g *Gate) refuseToRoute(book *rulebook, req *Request, m rules.Match, refusal *rules.Refusal) *Reply {
	j := journey{gate: g, book: book, req: req, match: m, began: time.Now()}
	if m.Rule != nil {
		j.route = book.routes[m.Rule.Index]
		j.beginTrace()
	}
	return j.count(j.refuse(decision.Decision(refusal.Kind), refusal.Detail, 0))
}

// count tells those who watch of a reply.
func (j *journey) count(reply *Reply) *Reply {
	total := time.Since(j.began)
	j.gate.meter.Request(reply.Rule, reply.Decision, total, total-j.atBackend)
	j.gate.lines.note(j, reply, total)
	j.gate.refused.note(j, reply.Decision)
	if j.trace != nil {
		j.trace.End(reply)
	}
	return reply
}

// journey is one gated request on its way through Serve.
type journey struct {
	gate  *Gate
	book  *rulebook
	route *route
	req   *Request
	match rules.Match
	read  rules.Extraction
	facts rules.Facts

	began     time.Time
	atBackend time.Duration // spent there, all attempts
	limits    []store.LimitState
	loads     int     // of truth, that were asked for
	missing   bool    // truth does not have the slot
	outage    *outage // nil: the store decides
	shadow    bool    // it only looks on
	turn      bool    // it has one (turns)
	trace     Trace   // nil: nobody traces

	asked   store.Decide  // what question makes
	decided store.Decided // what ask is told
	grant   grant         // what admit makes
	settled store.Settle  // what settle makes
}

var journeys = sync.Pool{New: func() any { return new(journey) }}

// Serve is the journey of a request that Route found a rule for; it is called once for
// each such request.
func (g *Gate) Serve(req *Request, m rules.Match) *Reply {
	book := req.under
	defer book.end()
	j := journeys.Get().(*journey)
	j.gate, j.book, j.route, j.req, j.match, j.began = g, book, book.routes[m.Rule.Index], req, m, time.Now()
	j.beginTrace()
	reply := j.run()
	j.issue(reply)
	j.count(reply)
	*j = journey{} // not after a panic, when somebody may still look at it
	journeys.Put(j)
	return reply
}

func (j *journey) run() *Reply {
	if j.readsBodyFirst() {
		if reply := j.readBody(); reply != nil {
			return reply
		}
	}
	if reply := j.takeTurn(); reply != nil {
		return reply
	}
	defer j.endTurn()
	if reply := j.extract(); reply != nil {
		return reply
	}
	if reply := j.ruleLimit(); reply != nil {
		return reply
	}
	if j.route.decide.Pool == "" && !j.dedupedOrLimited() {
		return j.forwardUnheld()
	}
	if reply := j.repeatReject(); reply != nil {
		return reply
	}
	j.completeFacts()
	defer j.takeBack()
	grant, reply := j.admit()
	if reply == nil && j.req.Body == nil {
		grant, reply = j.readUnder(grant)
	}
	if reply != nil {
		return reply
	}
	if j.outage != nil {
		return j.passThrough(grant)
	}
	reply, outcome := j.forward(grant)
	j.settle(grant, outcome, reply)
	return reply
}

// extract finds the facts that tell whether the request is refused without the store.
func (j *journey) extract() *Reply {
	if x := j.req.ids; x != nil && j.match.Rule.Idempotency != nil {
		x.ttl = j.match.Rule.Idempotency.TTL
	}
	var refusal *rules.Refusal
	j.facts, refusal = j.read.Read(j.match.Rule, &j.req.Request, &j.match, int64(j.book.Config.Server.MaxBody))
	if refusal != nil {
		return j.refuse(decision.Decision(refusal.Kind), refusal.Detail, 0)
	}
	return nil
}

// completeFacts makes of the facts what the store is told, and others may remember.
func (j *journey) completeFacts() {
	j.facts.Fingerprint = j.read.Fingerprint(&j.facts)
	detach(&j.facts)
}

// detach gives the texts of f memory of their own, all one piece. Read in place, each of
// them would keep the whole head of its request for as long as it is remembered.
func detach(f *rules.Facts) {
	texts := [...]*string{&f.Slot, &f.Subject, &f.HoldRef, &f.Key, &f.Partition, &f.Scope}
	size := 0
	for _, text := range texts {
		size += len(*text)
	}
	var all strings.Builder
	all.Grow(size)
	for _, text := range texts {
		all.WriteString(*text)
	}
	rest := all.String()
	for _, text := range texts {
		n := len(*text)
		*text, rest = rest[:n], rest[n:]
	}
}

// ruleLimit is the limit of the rule in this process, before any store call.
func (j *journey) ruleLimit() *Reply {
	if j.route.limiter == nil {
		return nil
	}
	wait, ok := degrade.Take(j.route.limiter)
	if ok {
		return nil
	}
	cfg := j.match.Rule.Limits.Rule
	j.limits = append(j.limits, store.LimitState{
		Name:  "rule",
		Limit: store.Limit{Count: cfg.Rate.Count, Per: cfg.Rate.Per, Burst: cfg.Burst},
		Reset: wait,
	})
	return j.refuse(decision.DecisionRateLimited, "This kind of request comes too often at the moment.", wait)
}

// dedupedOrLimited is false for a request that the store has nothing to say of,
// unless it takes units.
func (j *journey) dedupedOrLimited() bool {
	return j.facts.Key != "" || !j.route.decide.SubjectLimit.IsZero() || !j.route.decide.ClientLimit.IsZero()
}
