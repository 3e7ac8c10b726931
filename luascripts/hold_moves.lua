-- What happens to the holds of a slot that has been loaded: they come to be, move
-- from state to state and lapse, and their attempts start and end. Units and the
-- subject's entry move along, and the ledger gets its line.

-- Marks a hold to be written by slot_save.
local function slot_keep(s, h)
  h.changed = true
  s.holds[h.id] = h
end

local function slot_log(s, h, from, cause)
  s.entries[#s.entries + 1] = { 'XADD', s.k.log, 'MAXLEN', '~', LEDGER_LENGTH, '*',
    't', int(s.now), 'h', h.id, 's', h.subject, 'u', int(h.units), 'f', from, 'o', h.state, 'c', cause }
end

local COUNTER = { held = 'held', pending = 'held', unknown = 'held', confirmed = 'conf' }

-- Moves a hold to a state and its units with it. Every move is in the ledger.
local function slot_move(s, h, state, cause)
  local from = h.state
  if COUNTER[from] then s[COUNTER[from]] = s[COUNTER[from]] - h.units end
  if COUNTER[state] then s[COUNTER[state]] = s[COUNTER[state]] + h.units end
  h.state = state
  if state == 'confirmed' then h.expires = 0 end
  slot_subject_count(s, h, from)
  slot_log(s, h, from, cause)
  slot_keep(s, h)
end

-- A new hold, before its first move gives it a state.
local function slot_new_hold(s, id, units, subject, text, fingerprint, scope)
  return {
    id = id, state = '', units = units, subject = subject, taken = s.now, expires = 0,
    adoptions = 0, attempts = {}, fingerprint = fingerprint, scope = scope, text = text,
  }
end

local function slot_start_attempt(s, h, id, lease)
  h.attempts[#h.attempts + 1] = { id = id, lease = s.now + lease, seen = s.rel }
  if id ~= h.id then s.attempts[id] = h.id end
  s.starts = { id = id, lease = s.now + lease }
  slot_keep(s, h)
end

-- Strikes out the i-th unanswered attempt.
local function slot_end_attempt(s, h, i)
  local id = h.attempts[i].id
  table.remove(h.attempts, i)
  if id ~= h.id then s.attempts[id] = false end
  slot_keep(s, h)
end

-- Lapses what is due and forgets what is past remembering, both bounded. Returns
-- how many holds lapsed.
local function slot_lapse(s, keep_unknown)
  if not s.known then return 0 end
  local due = redis.call('ZRANGEBYSCORE', s.k.due, '-inf', int(s.now), 'LIMIT', 0, 4 * LAPSE_BATCH)
  if #due == 0 then return 0 end
  local names = {}
  for i, id in ipairs(due) do names[i] = 'h:' .. id end
  slot_prefetch(s, names)
  local lapsed, looked = 0, 0
  for _, id in ipairs(due) do
    local h = slot_hold(s, id, true)
    if not h or hold_is_finished(h) then
      s.forget = s.forget or {}
      s.forget[#s.forget + 1] = id
    elseif looked < LAPSE_BATCH then
      looked = looked + 1
      if not keep_unknown then
        h.expires = s.now + COPY_WINDOW
        slot_move(s, h, 'lapsed', 'lapse')
        lapsed = lapsed + 1
        s.freed = true
      else
        h.expires = 0
        if h.state ~= 'unknown' then slot_move(s, h, 'unknown', 'lapse') end
        slot_keep(s, h)
      end
    end
  end
  return lapsed
end
