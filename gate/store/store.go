package store

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

const (
	// CopyWindow is how long a copy of a call may still arrive; finished ids are
	// remembered for it.
	CopyWindow = 30 * time.Second
	// LapseBatch bounds the due holds that one call lapses.
	LapseBatch = 16
	// MaxAdoptions bounds how often one hold may go on under a retry.
	MaxAdoptions = 16
	// MaxCancels bounds the cancels and confirms that run on one slot at once.
	MaxCancels = 64
	// LearnedInflight is the room of a slot whose capacity is not known.
	LearnedInflight = 4
	// Learned as a capacity: not known, the backend tells.
	Learned = int64(-1)
)

// Store is safe for concurrent use. Every method returns within the store's
// timeout or the context's deadline, whichever is sooner. A failure of the store
// itself is an *Error.
type Store interface {
	Truth

	// Decide is one atomic step before forwarding. See the package documentation.
	// It keeps nothing of d but the texts in it.
	Decide(ctx context.Context, d *Decide) (Decided, error)
	// Settle is one atomic step after forwarding. It keeps nothing of s but the texts
	// in it and the answer.
	Settle(ctx context.Context, s *Settle) (Settled, error)

	// WatchKey and WatchSlot return a watch that fires (at least once, perhaps
	// for nothing) after the key's owner settled, or after the slot's room or
	// units changed. It is a hint: waiters also poll.
	WatchKey(d *Decide) Watch
	WatchSlot(pool, slot string) Watch
	// WatchRun returns a watch that fires after this gate has seen the store come
	// back with other data (see "Runs"), before any call is answered from them. It
	// does not fire for nothing. C is nil where the data go with the process.
	WatchRun() Watch

	// Touch and Resume are how a gate comes back from an outage of the store. See
	// the package documentation.
	Touch(ctx context.Context, t *Touch) error
	Resume(ctx context.Context, q SlotQuery, gate string) error

	// Slot reads one slot after applying its due lapses; ErrNoSlot when it was
	// never seen.
	Slot(ctx context.Context, q SlotQuery) (Slot, error)
	// Slots lists a pool's slots in no particular order. cursor "" starts, a
	// returned "" ends; a slot may be listed twice, and a page may be shorter than
	// limit. ErrCursor: the cursor is none that the store gave.
	Slots(ctx context.Context, q SlotQuery, cursor string, limit int) ([]Slot, string, error)
	// Change sets what an operator may set, creating the slot if need be.
	Change(ctx context.Context, q SlotQuery, c SlotChange) (Slot, error)
	// Release frees a hold on an operator's word and returns the state it was
	// in; ErrNoHold when the slot has no such hold, or none that is open or
	// confirmed.
	Release(ctx context.Context, q SlotQuery, hold string) (decision.HoldState, error)
	// Ledger returns the newest entries of a slot, newest first.
	Ledger(ctx context.Context, pool, slot string, limit int) ([]Entry, error)

	// Secret is a key for one purpose, the same for all gates of the store for as long as
	// it has the same secret (DeriveKey). Once the store has told that, nobody is asked.
	Secret(ctx context.Context, purpose string) ([32]byte, error)

	// Ping checks that the store answers.
	Ping(ctx context.Context) error
	// Close ends all watches. It may be called twice.
	Close() error
}

// Watch is a hint channel that must be closed when no longer read.
type Watch interface {
	C() <-chan struct{}
	Close()
}

// Limit is a token bucket kept in the store as GCRA: Count events in Per, at most
// Burst at once. The zero Limit is none.
type Limit struct {
	Count int
	Per   time.Duration
	Burst int
}

// IsZero reports that there is no limit.
func (l Limit) IsZero() bool { return l.Count == 0 }

// Action is what a request does to the units of a slot.
type Action uint8

const (
	Book Action = iota
	Cancel
	Confirm
)

// Decide is the question whether one request may be forwarded.
type Decide struct {
	// ID is this request's attempt id and the id of a hold it takes: 16 to 64
	// characters of [0-9A-Za-z_-], unique for ever.
	ID string
	// Rule names the rule, for its limits.
	Rule string

	// Action is what is asked for. Cancel and Confirm take no units; Target is the
	// hold they mean where a reference named it, else it is found by slot and
	// subject. Unreferenced: only a hold without a reference can be meant, because
	// the request named one that is not known.
	Action       Action
	Target       string
	Unreferenced bool

	// Pool "" asks for no units (a guard).
	Pool    string
	Slot    string
	Subject string // "" none
	Units   int64

	// Capacity is the configured number of units or Learned; a slot's own, set
	// by an operator, goes before it.
	Capacity int64
	Truth    TruthKind
	// Hot is how old a look may be that a SoldOut rests on, Refresh how old one may
	// grow before the slot is due for another. Blind: do not answer Load, go on as
	// where capacity is not known.
	Hot, Refresh  time.Duration
	Blind         bool
	HoldTTL       time.Duration
	Retain        time.Duration
	OnePerSubject bool
	MaxPerSubject int64 // 0 no limit
	MaxInflight   int   // 0 no limit
	KeepUnknown   bool
	OpensAt       time.Time // zero: open

	// Lease is how long this attempt may be awaited, from now.
	Lease time.Duration

	// Key "" is no dedupe by key.
	Group, Partition, Key string
	KeyTTL                time.Duration
	// Scope is who asks; BareReplay says that with no scope on either side the
	// key alone is enough (client-sent, 16 characters or more).
	Scope        string
	BareReplay   bool
	Fingerprint  [32]byte
	RetryUnknown bool
	// Wait is how long this request will wait as a twin or for room: it is
	// registered with the owner, or the slot, for a notification. 0: it will not.
	Wait time.Duration
	// Await is the owner whose answer this twin waits for, "" at the first call.
	Await string

	Client       netip.Addr
	SubjectLimit Limit
	ClientLimit  Limit
	SlotLimit    Limit
	// Charged: an earlier call of this request has been charged for the subject
	// and client limits.
	Charged bool
	// Repeat > 0: this process would tell others for so long what a SoldOut tells, without
	// asking, and wants Decided.Holders; for so long WatchSlot tells of units that come free.
	Repeat time.Duration
	// Line: others of this process wait for room on this slot; where this call
	// would be admitted with a new hold it is NoRoom instead.
	Line bool
}

// LimitState is where a limit stands after a call, for the RateLimit fields.
type LimitState struct {
	Name      string // slot | subject | client
	Limit     Limit
	Remaining int
	Reset     time.Duration // until the bucket is full again
}

// Decided is a store's answer to Decide.
type Decided struct {
	Verdict decision.Verdict
	// Hold is the id of the hold to forward under; "" for a guard. For a Cancel or
	// Confirm it is the hold that is meant, "" none.
	Hold string
	// Adopted: the hold was taken by an earlier request of this key or subject.
	Adopted bool
	// Probe: this request is the lone probe of a full mark.
	Probe bool
	// ReleaseSeq is the slot's release counter, to be carried to Settle.
	ReleaseSeq int64
	// Owner is whom a Twin or SubjectBusy waits for.
	Owner string
	// MayReplay: the twin may be given its owner's answer.
	MayReplay bool
	// Answer is what was stored, for Replay and Answered; empty when the key was
	// completed without one.
	Answer []byte
	// RetryAfter is when the verdict may change by itself; 0 when not known.
	RetryAfter time.Duration
	// Limits are those that were looked at.
	Limits []LimitState
	// Holders stands beside a SoldOut that may be repeated (Decide.Repeat) to requests for
	// as many units that it does not know; nil: to none.
	Holders Holders
	// Lapsed counts the holds this call lapsed.
	Lapsed int
	// Left is how many units are left on the slot after this call; -1 when the
	// call did not look, or it is not known.
	Left int64
}

// Holders knows who has anything to do with a slot of which nothing is left. It is safe
// for concurrent use.
type Holders interface {
	// Know reports whether the slot may know the subject or the key of the request: only the
	// store can answer it then. Of others it has told all there is for as long as nothing
	// comes free.
	Know(d *Decide) bool
}

// Touch says that one gate passed requests of a slot to the backend while the
// store did not answer it. Until the gate's Resume, or for Lease, the slot is
// dirty: its counters only refuse, they do not admit more than LearnedInflight at
// once (one with TruthRemaining), and a full mark is probed as where capacity is learned.
type Touch struct {
	Gate  string // who; [0-9A-Za-z_-]
	Query SlotQuery
	Lease time.Duration
	// Forced are requests of the slot that are still at the backend, or whose
	// outcome is not known. Each is an unanswered attempt of a held hold, which is
	// taken if need be, whatever is left; one that is known is left as it is.
	Forced []Forced
}

// Forced is a request that went to the backend without a decide.
type Forced struct {
	ID string
	// Hold is what it goes under: its own id, or that of the earlier request
	// whose retry it is.
	Hold          string
	Subject       string
	Units         int64
	HoldTTL       time.Duration
	Lease         time.Duration // left of it
	MaxPerSubject int64
	Scope         string
	Fingerprint   [32]byte
	// The key is claimed where nobody has it or its outcome is not known.
	Group, Partition, Key string
	KeyTTL                time.Duration
}

// Settle reports how a forwarded request, or one that could not be, ended.
type Settle struct {
	ID   string // the attempt
	Hold string // "" for a guard, and for a Cancel or Confirm that means none

	Action Action
	Truth  TruthKind
	// Reference is the booking's id in the backend's answer; the hold is found by
	// it (Find). PendingTTL > 0: a booking is pending for so long, see "Pending".
	Reference  string
	PendingTTL time.Duration

	Pool, Slot, Subject string
	Units               int64
	Capacity            int64
	HoldTTL             time.Duration
	Retain              time.Duration
	MaxPerSubject       int64
	KeepUnknown         bool
	ReleaseSeq          int64
	Probe               bool

	Outcome rules.Outcome

	Group, Partition, Key string
	KeyTTL                time.Duration
	// Keep: the outcome is one that is stored and replayed.
	Keep bool
	// Answer is the encoded answer for the key and for waiting twins.
	Answer []byte
	// Scope and Fingerprint are written when a key's record has to be made anew.
	Scope       string
	Fingerprint [32]byte
}

// Settled says what a settlement found and left.
type Settled struct {
	// Applied is false when the attempt had been settled before.
	Applied bool
	// Hold is the hold's state afterwards.
	Hold decision.HoldState
	// Late: the hold was gone (lapsed or released) and has been counted again.
	Late bool
	// Oversold is by how many units a late or unseen booking put the slot over
	// its capacity; with truth, of what the slot is in debt.
	Oversold int64
	// Look: what is free is not known; with truth the slot is due for a look.
	Look bool
}

var (
	// ErrNoSlot: the slot was never seen, or its idle state has been dropped.
	ErrNoSlot = errors.New("no such slot")
	// ErrCursor: a list was asked to go on from a place that it never named.
	ErrCursor = errors.New("this cursor is none that a list gave; start with an empty one")
	// ErrNoHold: the slot has no such open or confirmed hold.
	ErrNoHold = errors.New("no such hold")
)

// ErrorKind classes store failures, for metrics and for what to do.
type ErrorKind string

const (
	KindTimeout    ErrorKind = "timeout"
	KindConnection ErrorKind = "connection"
	KindFull       ErrorKind = "full"   // out of memory: Redis OOM, or the memory store's bound
	KindReply      ErrorKind = "reply"  // an answer that no script of ours gives
	KindServer     ErrorKind = "server" // READONLY, LOADING, NOPERM, MASTERDOWN, …
	KindClosed     ErrorKind = "closed" // the store was closed here
	KindUnsent     ErrorKind = "unsent" // others were ahead here until its time was over: no word on the store
)

// Error is a failure of the store itself. Maybe tells that the call may have
// taken effect.
type Error struct {
	Op    string
	Kind  ErrorKind
	Maybe bool
	Err   error
}

func (e *Error) Error() string { return "store " + e.Op + ": " + string(e.Kind) + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }
