-- The slot's part of settle. d is the call, r what it found.

-- The state in the tombstone of an attempt whose booking this store had never seen.
local UNSEEN = 'unseen'

-- The state an outcome leads a hold to whose attempt has just been struck out.
local function settled_state(d, s, h, others)
  local outcome = d.outcome
  local booked = d.pending_ttl > 0 and h.state ~= 'confirmed' and 'pending' or 'confirmed'
  if h.state == 'pending' or h.expires == KEPT then return h.state end
  if outcome == 'duplicate' then
    local others_booked = h.subject == '' and 0 or slot_subject(s, h.subject).booked
    if h.state == 'confirmed' then others_booked = others_booked - 1 end
    if others_booked == 0 then return booked end -- H1
  end
  if outcome == 'booked' or outcome == 'done' then return booked end
  if not hold_is_open(h) then return h.state end
  return (others or slot_doubted(s, h)) and 'unknown' or 'released' -- H2, H8
end

-- What the outcome says about the slot's full mark, and whether a release of this
-- hold says that units came free at the backend.
local function settle_mark(d, s, h, released)
  local is_probe = d.probe and s.probe == d.id
  if d.outcome == 'sold_out' then
    full_mark(s, h.units, d.seen, is_probe)
  elseif is_probe then
    full_probed(s, d.outcome, hold_is_booked(h) and not slot_doubtful(s) and slot_capacity(s, d.capacity) ~= LEARNED)
  elseif released and d.outcome ~= 'busy' and d.outcome ~= 'never_sent' then
    full_release(s)
  end
end

-- The booking stands under the backend's own name for it.
local function settle_reference(d, s, h)
  local named = d.outcome == 'booked' or d.outcome == 'duplicate' or d.outcome == 'done'
  if d.reference == '' or not named or not hold_is_booked(h) then return end
  local note = slot_note(s, h.id)
  note.reference, note.changed = d.reference, true
  if d.reference_key then
    redis.call('SET', d.reference_key, h.id .. '|' .. s.k.name, 'PX', int(d.retain))
  end
end

-- H1, in whichever order the two are told: a hold that was booked as a duplicate, by its
-- only attempt, stands in for a booking of the subject that nobody had told of. The next
-- that is told is that one, and the hold goes; it moves no units where those of the
-- booking stay where a look found them. A later admit ends this: the subject may book
-- again, and this is no duplicate.
local function settle_stand_in(d, s, h, before, late)
  local was = before == 'confirmed' or before == 'pending'
  if h.subject == '' or was or not hold_is_booked(h) then return end
  if d.outcome == 'duplicate' then
    if h.adoptions == 0 and #h.attempts == 0 then slot_stands_in(s, h.subject, h.id) end
    return
  end
  local id = slot_stand_in(s, h.subject)
  local other = id and slot_hold(s, id)
  if not other then return end
  other.expires = s.now + COPY_WINDOW
  if not late then s.ref = s.ref + other.units end
  slot_move(s, other, 'released', 'duplicate', late)
  other.remembered = true -- copies of its settlement may follow
  pool_note(d, s, other)
end

local function settle_unknown(d, s, h, i)
  h.attempts[i].lease = 0
  if h.state == 'held' then
    slot_move(s, h, 'unknown', d.outcome)
  else
    slot_keep(s, h)
  end
end

-- The i-th unanswered attempt of the hold has an answer now.
local function settle_answered(d, r, s, h, i)
  local before = h.state
  if not d.keep and h.adoptions == 0 then s.unkept = h.key end -- the key goes, too
  slot_end_attempt(s, h, i)
  local after = settled_state(d, s, h, #h.attempts > 0)
  r.late = hold_is_finished(h) and after ~= before
  if hold_is_open(h) then h.lapses = h.expires end
  if after == 'pending' and after ~= before then
    h.expires = s.now + d.pending_ttl
  elseif after == 'released' and after ~= before then
    h.expires = s.now + COPY_WINDOW
    s.ref = s.ref + h.units
  end
  if after ~= before then slot_move(s, h, after, d.outcome, r.late) end
  settle_stand_in(d, s, h, before, r.late)
  settle_reference(d, s, h)
  if r.late then r.oversold = math.min(h.units, slot_over(s, d.capacity)) end
  settle_mark(d, s, h, after == 'released' and before ~= after)

  if hold_is_finished(h) and #h.attempts == 0 then
    slot_finish(s, d.hold_grave, h.state, h.subject)
    if d.id ~= h.id then slot_finish(s, d.attempt_grave, h.state) end
  elseif d.id ~= h.id then
    slot_finish(s, d.attempt_grave, h.state)
  end
end

-- A hold that this store never saw: only a booking leaves a trace, and whatever is
-- definite keeps a late copy of its decide from taking units. A duplicate is no
-- booking: who made it settles it, perhaps later, from another gate's journal.
local function settle_unseen(d, r, s)
  r.applied, r.unseen = true, true
  if d.outcome == 'unknown' then return end
  slot_keyed(s, d.key, d.key_ttl)
  local h = slot_new_hold(s, d.hold, d.units, d.subject, d.text, d.fingerprint, d.scope, d.key)
  local after = d.outcome == 'duplicate' and 'released' or settled_state(d, s, h, false)
  local booked = after == 'confirmed' or after == 'pending'
  if booked then
    s.adm = s.adm + h.units
    h.expires = s.now + d.pending_ttl
    slot_move(s, h, after, d.outcome)
    settle_stand_in(d, s, h, '', false)
    settle_reference(d, s, h)
    r.state, r.oversold = after, math.min(h.units, slot_over(s, d.capacity))
    s.freed = true -- who repeats that it is sold out does not know of this one
    pool_note(d, s, h)
  else
    slot_finish(s, d.hold_grave, '')
    if d.keep then
      slot_stray(s, d.key)
      s.freed = true -- who repeats that it is sold out does not know of this key
    end
  end
  if d.id ~= d.hold or not booked then slot_finish(s, d.attempt_grave, r.state) end
  if booked and not s.k.index then slot_finish(s, d.attempt_grave, UNSEEN) end
end

-- The attempt was settled before. What had to be carried to other shards then may not
-- have got there; h is nil where the hold is finished.
local function settle_again(d, r, s, h)
  if s.k.index then return end
  r.unseen = slot_finished(s, d.attempt_grave, d.attempt_grave) == UNSEEN
  if h then
    pool_note(d, s, h)
  elseif d.max_per_subject > 0 and d.subject ~= '' then
    pool_tell(s, d.hold, d.subject, 0, COPY_WINDOW)
  end
end

local function settle_slot(d, r, s)
  local h = slot_hold(s, d.hold)
  local i = h and hold_attempt(h, d.id)
  if not h then
    local state = slot_finished(s, d.hold_grave, d.attempt_grave)
    if not state then return settle_unseen(d, r, s) end
    r.state = state
    return settle_again(d, r, s)
  end
  r.state = h.state
  if not i or d.outcome == 'unknown' and h.attempts[i].lease == 0 then return settle_again(d, r, s, h) end

  r.applied = true
  s.freed = true
  slot_keyed(s, d.key, d.key_ttl)
  s.ended = d.id
  if d.outcome == 'unknown' then
    settle_unknown(d, s, h, i)
    settle_mark(d, s, h, false)
  else
    settle_answered(d, r, s, h, i)
  end
  r.state = h.state
  pool_note(d, s, h)
end
