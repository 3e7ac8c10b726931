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
//     H3; more than MaxAdoptions, or a hold in doubt (H8): OutcomeUnknown); if its
//     hold is confirmed, the key is completed as booked without a body: Replay with
//     an empty Answer (H21); if its hold is gone, a new hold is taken under this id
//     and all later checks run. An unknown key keeps its whole ttl (H7).
//  5. Subject limit, then client limit, unless Charged: a call that passes one is
//     charged, also when a later check refuses.
//  6. OnePerSubject: an attempt of the subject runs on the slot within its lease:
//     SubjectBusy. Its hold is unanswered: with RetryUnknown and equal scope,
//     fingerprint and units adoption as in 4, else OutcomeUnknown. It is
//     confirmed or pending: SubjectHolds.
//  7. MaxPerSubject over the pool: SubjectFull.
//  8. Closed; NotOpen.
//     With Truth, unless Blind: Load, if the slot's counters were never verified
//     against truth under the store's present run (see "Truth").
//  9. Units: more than the slot has in all, if any: OverCapacity. Not enough left, or
//     marked full for that many: SoldOut, unless this call is elected the lone
//     probe of a mark whose pause has passed (one at a time, by its lease).
//  10. Slot limit: LimitedSlot. It is charged only by an admit.
//  11. MaxInflight attempts within their lease (LearnedInflight, if that is fewer,
//     where the slot's capacity is not known or its counters only refuse; one at a
//     time where "Truth" says so), or Line: NoRoom. A call with Line is never elected the lone probe.
//  12. Admitted: hold taken, key claimed, attempt counted, ledger entry written.
//
// A SoldOut of step 9, by counters or by the mark, that rests on a look older than
// Hot is Load instead, unless Blind.
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
//     the slot: then as refused (H1, H2). A hold never seen is not created: the
//     booking that it is a duplicate of has a settlement of its own. Where that comes
//     later, it is as if it had come first: a hold that was booked as a duplicate, by its
//     only attempt, stands in for it, and is released by the next booking of the subject
//     on the slot that is told (after a lapse with +0, H5), unless the subject was admitted
//     there for a new hold meanwhile.
//   - refused, sold_out, busy, never_sent: the attempt is struck out; when none is
//     left unanswered, and the hold is not in doubt (H8), it is released and its units
//     are free, else hold and key become unknown (H2). sold_out also marks the slot
//     full for Units or more, unless a release happened since the decide (ReleaseSeq
//     moved, H12).
//   - unknown: the hold becomes unknown, the attempt stays unanswered.
//
// The key changes if this attempt owns it: done with Answer when Keep; none when the
// outcome is not kept; unknown while the hold is. An attempt whose retry owns the key by
// now completes it too when it was booked, duplicate or done and Keep, if the key still
// names its hold, fingerprint and scope and is not done: the booking is the key's, whatever
// becomes of the retry. What is done stays done, with the answer that came first. Whatever
// the outcome, an owner's Answer, if there is one, is left for twins that registered
// (Decide.Wait) until they stop waiting; without one they are decided afresh.
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
// # Cancel and confirm (design 3.5)
//
// A Cancel's or Confirm's decide names the hold it means, in Decided.Hold: Target,
// if that hold stands confirmed or pending (for Confirm: pending) on the slot; without
// Target the only such hold that the subject has there (Unreferenced: the only one of
// those without a reference); none or several: "". Its subject is Decide.Subject, else
// the target's.
// Of the steps above it takes 1, 2, 4 and 5; then, with a subject:
//
//   - an attempt of the subject runs on the slot within its lease (a booking's, or
//     for a booking: a Cancel's): SubjectBusy, whatever OnePerSubject says (H9).
//     Cancels and confirms do not wait for each other. An adoption (step 4) is held
//     up in the same way.
//   - else Admitted: the attempt is noted on the slot with its lease, its subject
//     and the hold it means. MaxCancels attempts at once, then NoRoom.
//
// Its settlement takes Outcome done, refused, unknown, busy or never_sent and acts on
// the hold that decide named and on nothing else (H10), whether that decide is still
// remembered or not:
//
//   - Cancel, done: a confirmed or pending hold is released; with attempts unanswered,
//     now or at the cancel's decide, it becomes unknown instead, for HoldTTL: one of
//     them may have been booked after the cancel (H8, H11). Its units are free, except
//     that with TruthRemaining a cancel that is settled after its lease, or whose
//     decide is not remembered, moves no units (the hold goes, the look finds them);
//     nor does one of a hold in doubt.
//   - Confirm, done: a pending hold is confirmed; one that expired meanwhile too, as
//     by a late booking.
//   - anything else, and done without a hold: no units move. done without a hold,
//     unknown, and a cancel that moved no units for being late, ask for a look
//     (Settled.Look).
//
// A hold is in doubt, for good, once a cancel of it may have been done while the hold
// stands: the cancel left it unknown, or without an answer (settled as unknown, or not
// within its lease). A look may have counted its units free already, and the backend may
// have another of its bookings. So while it is open no request goes on under it
// (OutcomeUnknown), and no definite failure releases it: it lapses, is kept, or a booked
// answer confirms it. A later cancel then releases it and moves no units.
//
// done is believed: where a backend says it to a cancel of nothing, of a booking that
// its own console, or a cancel that meant no hold, took out before, a look may have
// counted the units already, and they are free twice until the next one. An outcomes
// line should name such an answer refused.
//
// A cancel that was done, of a hold that the store does not know, keeps the hold from
// coming to be for CopyWindow: after a loss of data gates tell again what they told
// last, and the booking may come after its cancel.
//
// A hold that is no longer what decide found (released, not confirmed) is left
// alone: however often a cancel comes, it frees once. Any outcome ends the attempt:
// of two settlements the first counts. The key is treated as a booking's, but names no
// hold: only unknown leaves it unknown, and a retry under it is decided afresh.
//
// # Pending
//
// With PendingTTL a booked hold is pending and expires after it. Pending units count
// as held for operators; in a look they count as confirmed. At its expiry a pending
// hold lapses without freeing units where Truth is TruthRemaining, and the slot is
// due for a look; elsewhere it becomes unknown and keeps its units until an operator
// says: it is never given back blindly, nor does a retry go on under it. Whatever
// other attempts of a pending, or expired, hold settle leaves it as it is. A pending
// hold is as good as a confirmed one for H1, H21 and SubjectHolds.
//
// # Truth (design section 5)
//
// With TruthRemaining a slot keeps the units available, signed: negative is debt,
// shown as 0, and never admits. Admits and releases move it. A lapse, an operator's
// Release, a booking settled after its hold lapsed or was released, a cancel settled
// late, move nothing (H5): the next look finds what they left. Look and Apply compute
//
//	available := Value − [Open + (admitted − Admitted) − (refunded − Refunded)] − cancels
//
// where admitted counts units of every hold taken (decide, Touch, unseen bookings),
// refunded those of holds released by definite failures, Open is held + unknown +
// booked (also as pending) for less than Lag, or with an attempt unanswered that may
// still be booked (until the hold would have lapsed: were its booking cancelled, that
// attempt could take the unit again), and cancels are the units of distinct confirmed or
// pending holds that a Cancel within its lease means (H13–H15).
// The result is always taken, up or down. An apply is refused if the slot lives anew
// (Born), if one that began later (At) was applied, if its Fence is older than the
// slot's, or if the slot was touched after At (H18). A copy of an apply is refused by
// its own At. A slot unknown at Look and at Apply is created by it.
//
// An apply that finds as many units as a full mark is for, ends one that stood at its
// Look. It verifies the slot. One that failed keeps the counters, which then only
// refuse: the slot admits no more than LearnedInflight at once, and a sold out by
// counters starts a full mark, which is probed as where capacity is learned. Where it
// finds no verified counters, the slot is learned for Hot, then Load again. LookFailed
// says so.
//
// How old a look is counts from its beginning (At).
//
// With TruthTotal an apply sets the slot's capacity and verifies nothing: after a
// change of run the slot is learned, as where capacity is a number.
//
// After a change of run (below) a slot that is not verified answers Load no sooner
// than HoldTTL after the change was first seen; until then it admits as learned, with
// holds (H17), one at a time, as a dirty slot does: the backend then decides with
// nobody beside, so that it sells no more than it has though it may have no constraint.
// With KeepUnknown nobody is let in there beside a hold without an answer, and one at a
// time too where no look has found anything yet, or the last one failed. Touch makes counters unverified once it is resumed: the first decide
// after Resume is Load.
//
// A slot is due for a look Hot after something moved that was not moving before, at
// once after Settled.Look, at once when a decide finds the last look older than
// Refresh, Hot after an apply that said Again or saw movement, and Refresh after
// another, for as long as the slot moved within an hour (or ten Refresh, if that is
// longer); in any case when the first of its open holds lapses. Hot and Refresh are
// those of the latest decide or apply. Due hands them out; what becomes due sooner while
// a slot is taken waits for its apply, or for Due's lease.
//
// # Ledger and outbox
//
// Every transition is an entry in its slot's ledger, and with Redis, from a second after a
// program has made it on, also in the pool's outbox, a stream that other programs read with
// a consumer group (luascripts/keys.go names it and lists its fields). Both are capped and
// live for Retain.
//
// # Coming back (design section 4, H18)
//
// A gate that passed requests through while the store was away calls Touch for
// each such slot before anything else, then Settle for each of those requests, those
// of one slot in order, then Resume. A settlement of a hold never seen that was booked
// creates it confirmed, and writes its key over none or unknown, never over done, nor over
// one that runs under another hold. Slots are touched by several gates independently.
//
// # Sending again (design section 4, H17)
//
// A gate that sees the run change (WatchRun) does the same for what the run that is gone
// may have taken in vain: a replica that was promoted lacks the last writes, a server that
// was started again lacks all. It touches the slots of the settlements of the last seconds
// and of its requests at the backend, registers these requests and those without an
// answer, sends the settlements again, those of one slot in their order, and resumes. No
// request waits for it: none of these slots is verified yet. What the store still has is not changed (P3):
//
//   - a settlement finds its attempt settled, or the id finished; once both are forgotten,
//     a definite failure leaves nothing. A booking whose hold somebody released while
//     the store was away for longer than CopyWindow stands again, until truth or an
//     operator: that takes units, it gives none.
//   - an unknown outcome is registered before it is settled, for hold_ttl from then.
//   - a cancel whose decide is lost moves no units where a look finds them; elsewhere it
//     frees those of the hold that it names, if that stands. One that comes before the
//     booking, from another gate, frees nothing and asks for a look.
//   - a key is written only over none or unknown, for what is left of its ttl.
//
// What is sent again is bounded in number, bytes and age. The rest is left to truth.
//
// The wait of HoldTTL before the first load (see "Truth") is not cut short when gates have
// registered their requests: nobody knows all gates. One that is cut off together with
// the old master is in no list that the new one has, and cannot be told from one that has
// ended; to be sure takes a lease without which no gate admits, and then the wait is for
// that lease. By HoldTTL whatever any gate had at the backend when the change was seen
// has been booked, or never will be (A1), whether that gate is known or not. What a gate
// that is cut off takes from the old master after that, is in its marks when it is back;
// Redis's min-replicas-to-write keeps it from taking any.
package store
