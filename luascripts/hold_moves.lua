-- What happens to the holds of a slot that has been loaded: they come to be, move
-- from state to state and lapse, and their attempts start and end. Units and the
-- subject's entry move along, and the ledger gets its line.

-- Marks a hold to be written by slot_save.
local function slot_keep(s, h)
  h.changed = true
  s.holds[h.id] = h
end

local function slot_log(s, h, from, cause)
  s.entries[#s.entries + 1] = table.concat({ int(s.now), h.id, h.subject, int(h.units), from, h.state, cause }, '|')
end

local COUNTER = { held = 'held', pending = 'held', unknown = 'held', confirmed = 'conf' }

-- What stands beside a hold.
local function slot_note(s, id)
  local note = s.notes[id]
  if not note then
    local doubted, booked, reference = string.match(slot_get(s, 'f:' .. id) or '', '^([01])|(%d*)|(.*)$')
    note = { doubted = doubted == '1', booked = tonumber(booked), reference = reference or '' }
    s.notes[id] = note
  end
  return note
end

-- Keeps count of pending holds, and of when a hold was booked. While other attempts of
-- it are unanswered it stands in due by when it would have lapsed: till then its booking
-- may be cancelled and made again.
local function slot_book(s, h, from)
  if from == 'pending' then
    local booked = redis.call('ZSCORE', s.k.due, '+' .. h.id)
    h.booked = booked and tonumber(booked) - CONFIRMED_ZONE or s.now
    s.unlisted = s.unlisted or {}
    s.unlisted[#s.unlisted + 1] = '+' .. h.id
  elseif #h.attempts > 0 then
    local note = slot_note(s, h.id)
    note.booked, note.changed = s.now, true
    h.booked = math.max(s.now, h.lapses or 0)
  else
    h.booked = s.now
  end
  if s.v then
    local units = (h.state == 'pending' and h.units or 0) - (from == 'pending' and h.units or 0)
    if units ~= 0 then s.v.pending, s.retold = math.max(0, s.v.pending + units), true end
  end
end

-- Moves a hold to a state and its units with it. Every move is in the ledger. A still
-- move changes nothing, with truth, about how many units are available: the next look
-- finds what it left.
local function slot_move(s, h, state, cause, still)
  local from, taken = h.state, s.conf + s.held
  if COUNTER[from] then s[COUNTER[from]] = s[COUNTER[from]] - h.units end
  if COUNTER[state] then s[COUNTER[state]] = s[COUNTER[state]] + h.units end
  h.state = state
  if state == 'confirmed' then h.expires = 0 end
  if from == 'pending' or hold_is_booked(h) then slot_book(s, h, from) end
  if still and s.kind == TRUTH_REMAINING and s.v.cap then
    s.v.cap, s.retold = s.v.cap + s.conf + s.held - taken, true
  end
  if hold_is_finished(h) and h.key ~= s.unkept then slot_stray(s, h.key) end
  slot_subject_count(s, h, from)
  slot_log(s, h, from, cause)
  slot_keep(s, h)
end

-- A cancel of the hold may have been done, and an attempt booked before or since (H8).
local function slot_doubt(s, id)
  if not slot_hold(s, id) then return end
  local note = slot_note(s, id)
  note.doubted, note.changed = true, true
end

-- Whether that was so of any; one past its lease is as good as unanswered.
local function slot_doubted(s, h)
  if slot_note(s, h.id).doubted then return true end
  for _, c in ipairs(s.cancels) do
    if c.kind == CANCEL and c.hold == h.id and c.lease <= s.now then return true end
  end
  return false
end

-- A new hold, before its first move gives it a state.
local function slot_new_hold(s, id, units, subject, text, fingerprint, scope, key)
  return {
    id = id, state = '', units = units, subject = subject, taken = s.now, expires = 0,
    adoptions = 0, attempts = {}, fingerprint = fingerprint, scope = scope, key = key, text = text,
  }
end

local function slot_start_attempt(s, h, id, lease)
  h.attempts[#h.attempts + 1] = { id = id, lease = s.now + lease, seen = s.rel }
  if id ~= h.id then s.attempts[id] = h.id end
  s.started[#s.started + 1] = { id = id, lease = s.now + lease }
  slot_keep(s, h)
end

-- Strikes out the i-th unanswered attempt.
local function slot_end_attempt(s, h, i)
  local id = h.attempts[i].id
  table.remove(h.attempts, i)
  if hold_is_booked(h) and #h.attempts == 0 then h.booked = slot_note(s, h.id).booked or s.now end
  if id ~= h.id then s.attempts[id] = false end
  slot_keep(s, h)
end

-- A booking that was to be confirmed in time was not. With truth the next look says
-- what became of it; else nobody knows, and its units are kept.
local function slot_expire(s, h)
  if s.kind == TRUTH_REMAINING then
    h.expires = s.now + COPY_WINDOW
    slot_move(s, h, 'lapsed', 'lapse', true)
    h.remembered = true
    truth_ask(s)
  else
    h.expires = KEPT
    slot_move(s, h, 'unknown', 'lapse')
  end
end

-- Lapses what is due and forgets what is past remembering, both bounded. Returns
-- how many holds lapsed.
local function slot_lapse(s, keep_unknown)
  if not s.known or s.first == 0 or s.first > s.now then return 0 end
  local due = redis.call('ZRANGEBYSCORE', s.k.due, '-inf', int(s.now), 'LIMIT', 0, 4 * LAPSE_BATCH)
  local names = {}
  for i, id in ipairs(due) do names[i] = 'h:' .. id end
  slot_prefetch(s, names)
  local lapsed, looked, more = 0, 0, #due == 4 * LAPSE_BATCH
  for _, id in ipairs(due) do
    local h = slot_hold(s, id, true)
    if not h or hold_is_finished(h) then
      s.forget = s.forget or {}
      s.forget[#s.forget + 1] = id
    elseif looked < LAPSE_BATCH then
      looked = looked + 1
      if h.state == 'pending' then
        slot_expire(s, h)
        if hold_is_finished(h) then lapsed = lapsed + 1 end
      elseif not keep_unknown then
        h.expires = s.now + COPY_WINDOW
        slot_move(s, h, 'lapsed', 'lapse', true)
        h.remembered = true -- copies of its settlements may follow
        lapsed = lapsed + 1
        s.freed = true
      else
        h.expires = 0
        if h.state ~= 'unknown' then slot_move(s, h, 'unknown', 'lapse') end
        slot_keep(s, h)
      end
    else
      more = true
    end
  end
  if not more then
    local next = redis.call('ZRANGEBYSCORE', s.k.due, '(' .. int(s.now), BELOW_KEPT, 'WITHSCORES', 'LIMIT', 0, 1)
    s.first, s.noted = tonumber(next[2] or 0), true
  end
  return lapsed
end
