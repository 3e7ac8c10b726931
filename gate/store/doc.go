// Package store is what the journey asks of the place where counters, holds and
// keys live: one atomic Decide before a request is forwarded, one atomic Settle
// after, and the operators' view of slots.
//
// # Calls
//
// Decide and Settle may each be repeated, by a client library or by a network
// that delivers twice: the effect is that of once (design P3). The request's own
// id names everything it does: it is the id of its attempt and, when it takes
// units, of its hold. A finished id is never taken again (H4, H22).
//
// Time is the store's own. Durations in a call are relative to it.
//
// # What decide does, in this order
//
//  1. The awaited owner's answer, if Await names one and it has left it: Answered.
//  2. Own id: a recorded grant is returned as it was (also to an adopter, as long
//     as its attempt is unanswered); a finished id is Gone.
//  3. Lapse of due holds of the slot, at most LapseBatch per call. A hold that is
//     `held` or `unknown` and past hold_ttl becomes lapsed and its units are
//     free; with KeepUnknown it becomes (or stays) unknown and keeps them.
//  4. Key. Unknown key: go on. Another fingerprint: Mismatch. done: Replay if the
//     stored answer may be given, else KeyDone. running within its lease: Twin.
//     unknown, or running past its lease: without RetryUnknown or with another
//     scope OutcomeUnknown; else, if its hold is open, that hold goes on under
//     this attempt (adoption: hold becomes held, hold_ttl and lease start anew,
//     H3; more than MaxAdoptions: OutcomeUnknown); if its hold is confirmed, the
//     key is completed as booked without a body: Replay with an empty Answer
//     (H21); if its hold is gone, a new hold is taken under this id and all later
//     checks run. An unknown key keeps its whole ttl (H7).
//  5. Subject limit, then client limit, unless Charged: a call that passes one is
//     charged, also when a later check refuses.
//  6. OnePerSubject: an attempt of the subject runs on the slot within its lease:
//     SubjectBusy. Its hold is unanswered: with RetryUnknown and equal scope,
//     fingerprint and units adoption as in 4, else OutcomeUnknown. It is
//     confirmed or pending: SubjectHolds.
//  7. MaxPerSubject over the pool: SubjectFull.
//  8. Closed; NotOpen.
//  9. Units: more than the slot has in all, if any: OverCapacity. Not enough left, or
//     marked full for that many: SoldOut, unless this call is elected the lone
//     probe of a mark whose pause has passed (one at a time, by its lease).
//  10. Slot limit: LimitedSlot. It is charged only by an admit.
//  11. MaxInflight attempts within their lease (LearnedInflight where the slot's
//     capacity is not known and MaxInflight is 0 or more than that), or Line:
//     NoRoom. A call with Line is never elected the lone probe.
//  12. Admitted: hold taken, key claimed, attempt counted, ledger entry written.
//
// Everything is checked before anything but a limit's charge and a lapse is
// written. A refusal (from 4 on) of a call that was sent twice leaves a
// tombstone of the id for CopyWindow.
//
// # What settle does
//
// It acts only if the attempt is still among the hold's unanswered attempts, or
// the hold was never seen by this store; else it changes nothing and says what it
// found. The slot is settled first, then the key (H20).
//
//   - booked: the hold is confirmed, also after it lapsed or was released by an
//     operator while unanswered (its units are then counted again; Settled.Oversold
//     says how far the slot is over its capacity). A hold never seen is created
//     confirmed.
//   - duplicate: as booked, unless another confirmed hold of the subject stands on
//     the slot: then released (H1). A hold never seen is not created: the booking
//     that it is a duplicate of has a settlement of its own.
//   - refused, sold_out, busy, never_sent: the attempt is struck out; when none is
//     left unanswered the hold is released and its units are free, else hold and
//     key become unknown (H2). sold_out also marks the slot full for Units or
//     more, unless a release happened since the decide (ReleaseSeq moved, H12).
//   - unknown: the hold becomes unknown, the attempt stays unanswered.
//
// The key changes only if this attempt owns it: done with Answer when Keep; none
// when the outcome is not kept; unknown while the hold is. Whatever the outcome,
// Answer is left for twins that registered (Decide.Wait) until they stop waiting.
//
// # The full mark (design 3.6)
//
// A mark starts with a pause of 1 s. After the pause one request is the lone
// probe. Its sold_out doubles the pause up to 30 s; unknown keeps mark and pause;
// refused, busy and never_sent let the next probe go at once, never_sent after a
// second. Its booked ends the mark of a slot whose capacity is a number, and lets
// the next single probe go at once where it is learned: one unit at a time. A
// release (of a hold that was not itself sold out, busy or never sent, nor the
// probe's), an operator's set, open or release ends the mark and moves the
// release counter.
//
// # Runs: a store that comes back with other data (design H16)
//
// A store knows its run, an id that changes whenever its data may be other than
// it was. For Redis it stands beside the data, with the server process on which it
// was noted, and is looked at on each new connection before its first command and
// every second: a restart, a promotion and a flush change it, replicas that come and
// go do not. Each slot remembers the run under which its counters were verified: it
// is born verified, an operator's set or Verify verifies it. A slot verified under another run admits as where capacity is not
// known, with holds, whatever its configured number is; so does a slot that the
// store does not know, once any gate has seen the run change while it was running
// (the store remembers that: a gate that starts later does the same). Slot then
// has Verified false, Dirty true and Capacity Learned.
//
// # Coming back (design section 4, H18)
//
// A gate that passed requests through while the store was away calls Touch for
// each such slot before anything else, then Settle for each of those requests in
// order, then Resume. A settlement of a hold never seen that was booked creates it
// confirmed, and writes its key over none or unknown, never over running or done. Slots are touched by several gates independently.
package store
