-- Steps 2 and 6 to 12 of decide: what the slot says.

-- Step 2: this id has been here before.
local function decide_known_id(d, r, s)
  local cancel = cancel_of(s, d.id)
  if cancel then
    r.verdict, r.hold = 'admitted', cancel.hold
    return true
  end
  local h = slot_hold(s, d.id)
  if not h then
    local adopted = slot_get(s, 't:' .. d.id)
    if not adopted then return false end
    h = slot_hold(s, adopted)
  end
  local i = h and hold_attempt(h, d.id)
  if i and hold_is_open(h) then
    r.verdict, r.hold, r.adopted = 'admitted', h.id, h.id ~= d.id
    r.probe, r.seen = s.probe == d.id, h.attempts[i].seen
  else
    r.verdict = 'gone'
  end
  return true
end

-- Step 6: the subject's other requests on this slot.
local function decide_subject(d, r, s)
  if d.subject == '' then return false end
  if cancel_busy(d, r, s, d.subject) then return true end
  if not d.one_per_subject then return false end
  local subject = slot_subject(s, d.subject)
  local unanswered
  local holds = subject.booked > 0
  for i = 1, math.min(#subject.holds, SUBJECT_SCAN) do
    local h = slot_hold(s, subject.holds[i])
    local running = h and hold_running(h, s.now)
    if running then
      r.verdict, r.owner, r.retry = 'subject_busy', running.id, running.lease - s.now
      slot_wait(s, d.wait)
      return true
    end
    if h and hold_is_open(h) and h.state ~= 'pending' then
      unanswered = unanswered or h
    end
  end
  if unanswered then
    if d.retry_unknown and unanswered.scope == d.scope and unanswered.fingerprint == d.fingerprint
      and unanswered.units == d.units then
      adopt(d, r, s, unanswered)
    else
      r.verdict = 'outcome_unknown'
    end
    return true
  end
  if holds then r.verdict = 'subject_holds' end
  return holds
end

-- When units that are held now may come free by lapsing.
local function next_lapse(d, s, capacity)
  if d.truth == TRUTH_REMAINING or d.keep_unknown or s.held == 0 or s.conf + d.units > capacity then return 0 end
  local first = redis.call('ZRANGEBYSCORE', s.k.due, int(s.now), BELOW_KEPT,
    'WITHSCORES', 'LIMIT', 0, 1)
  return first[2] and math.max(1, tonumber(first[2]) - s.now) or 0
end

-- Whether truth must be looked at before this slot can be decided.
local function load_needed(d, s)
  if d.truth == NO_TRUTH or d.blind then return false end
  if truth_failed(s) and s.now - s.v.checked <= d.hot then return false end
  if d.truth == TRUTH_TOTAL then return s.v.total == LEARNED end
  return not truth_counts(s) and truth_wait(s, d.hold_ttl) == 0
end

-- Whether a sold out of this slot rests on a look that is too old.
local function stale(d, s)
  return d.truth ~= NO_TRUTH and not d.blind and s.now - s.v.checked > d.hot and truth_wait(s, d.hold_ttl) == 0
end

-- Step 9. What is left by counters, which a look that failed makes doubtful, and what
-- the full mark says.
local function decide_left(d, r, s)
  local capacity, total = slot_capacity(s, d.capacity), slot_total(s, d.capacity)
  local short = capacity ~= LEARNED and s.conf + s.held + d.units > capacity
  if total > 0 and d.units > total then
    r.verdict = 'over_capacity'
    return
  end
  if short and (not truth_failed(s) or stale(d, s)) then
    r.verdict, r.retry = 'sold_out', next_lapse(d, s, capacity)
    return
  end
  local mark, left = full_look(s, d.units)
  if short and mark == 'free' then
    full_mark(s, d.units, s.rel, false)
    mark, left = full_look(s, d.units)
  end
  if mark == 'full' or mark == 'probe' and d.line then
    r.verdict, r.retry = 'sold_out', left or 0
  end
  r.probe = mark == 'probe'
end

-- A sold out that rests on counters which have nothing left is true until they change: who
-- may be told so without being asked, for as long as the slot gives notice.
local function offer_holders(d, r, s)
  local capacity = slot_capacity(s, d.capacity)
  if d.repeats == 0 or d.blind or capacity == LEARNED or s.conf + s.held < capacity or slot_doubtful(s) then return end
  if d.truth ~= NO_TRUTH and s.now + d.repeats - s.v.checked > d.hot then return end -- stale before that
  r.holders = slot_holders(s)
  if r.holders ~= '' then slot_wait(s, d.repeats) end
end

-- Steps 8 and 9: open, looked at, and units left.
local function decide_units(d, r, s)
  local opens = s.opens or d.opens
  if s.closed then
    r.verdict = 'closed'
  elseif opens > s.now then
    r.verdict, r.retry = 'not_open', opens - s.now
  elseif load_needed(d, s) then
    r.verdict = 'load'
  else
    decide_left(d, r, s)
    if r.verdict == 'sold_out' and stale(d, s) then r.verdict, r.retry = 'load', 0 end
    if r.verdict == 'sold_out' then offer_holders(d, r, s) end
  end
  return r.verdict ~= nil
end

-- A decide is when a slot that nobody has asked for a while is found to be due.
local function decide_look(d, s)
  truth_pace(s, d.hot, d.refresh)
  if slot_capacity(s, d.capacity) ~= LEARNED and s.now - s.v.checked > d.refresh then truth_due(s, s.now) end
end

-- How many of the slot may be at the backend at once, 0 any number. While counters that
-- follow truth are not to be believed, one: a backend that reads and then writes, and
-- has no constraint, then sells no more than it has. Where unknown outcomes are kept
-- (such a backend), also while truth cannot be read, and nobody is let in beside a request
-- without an answer that nothing counts.
local function room_of(d, s)
  local room = d.max_inflight
  local unknown = slot_capacity(s, d.capacity) == LEARNED
  if not (unknown or slot_doubtful(s)) then return room end
  local most = LEARNED_INFLIGHT
  if d.truth == TRUTH_REMAINING then
    local unverified = slot_is_dirty(s) or truth_wait(s, d.hold_ttl) > 0
    if unverified or d.keep_unknown then most = 1 end
    if d.keep_unknown and (unverified or unknown) and s.held > s.v.pending then return 1, true end
  end
  return (room == 0 or room > most) and most or room
end

-- Step 11: room at the backend.
local function decide_room(d, r, s)
  local room, none = room_of(d, s)
  local awaited = '(' .. int(ATTEMPT_ZONE + s.now)
  if not (d.line or none or room > 0 and redis.call('ZCOUNT', s.k.due, awaited, '+inf') >= room) then
    return false
  end
  r.verdict = 'no_room'
  local first = redis.call('ZRANGEBYSCORE', s.k.due, awaited, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  r.retry = first[2] and tonumber(first[2]) - ATTEMPT_ZONE - s.now or 0
  slot_wait(s, d.wait)
  return true
end

-- Step 12: nothing is in the way.
local function decide_admit(d, r, s)
  local h = slot_new_hold(s, d.id, d.units, d.subject, d.text, d.fingerprint, d.scope, d.key)
  slot_keyed(s, d.key, math.max(d.key_ttl, d.lease))
  h.expires = s.now + d.hold_ttl
  slot_start_attempt(s, h, d.id, d.lease)
  if slot_stand_in(s, d.subject) then slot_stands_in(s, d.subject, false) end
  slot_move(s, h, 'held', 'decide')
  s.adm = s.adm + d.units
  if r.probe then full_probe(s, d.id, d.lease) end
  pool_note(d, s, h)
  r.verdict, r.hold = 'admitted', d.id
end
