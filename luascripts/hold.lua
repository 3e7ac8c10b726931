-- A hold is one field of its slot, h:ID, packed as
--
--   state|key|expires|adoptions|attempts|units|subject hash|taken|fingerprint|scope hash|subject
--
-- The subject is free text, so it comes last; key is the short hash of the key it was
-- taken under, "" none. attempts are those that nobody has
-- an answer to, as id:lease:seen joined by commas: id is "" where it is the hold's own,
-- lease until when its gate awaits it, 0 once it was settled as unknown, seen the release
-- counter it was told.
-- expires is when an open hold lapses (0: it did, and is kept), or until when a finished
-- one is remembered; KEPT: it neither lapses nor is taken up again, its booking was never
-- confirmed. Gates read this form too (redisstore/hold.go).
--
-- Beside a hold of which more is to be said stands f:ID, doubted|booked|reference: 1
-- where a cancel of it may have been done, without an answer or with others open, else 0;
-- when it was booked, where attempts of it were unanswered then; the text that the backend
-- calls it by.

local HOLD = '^(%a+)|([^|]*)|(%d+)|(%d+)|([^|]*)|(%d+)|([^|]*)|(%d+)|([^|]*)|([^|]*)|(.*)$'

local KEPT = 1

local function hold_parse(id, packed, key)
  local state, key_hash, expires, adoptions, list, units, subject, taken, fingerprint, scope, text =
    string.match(packed, HOLD)
  if not state then
    error({ err = 'SCHEMA ' .. key .. ' has a hold that no gate wrote: ' .. id })
  end
  local attempts = {}
  for attempt, lease, seen in string.gmatch(list, '([^:,]*):(%d+):(%d+)') do
    attempts[#attempts + 1] = { id = attempt ~= '' and attempt or id, lease = tonumber(lease), seen = tonumber(seen) }
  end
  return {
    id = id, state = state, units = tonumber(units), subject = subject,
    taken = tonumber(taken), expires = tonumber(expires), adoptions = tonumber(adoptions),
    attempts = attempts, fingerprint = fingerprint, scope = scope, key = key_hash, text = text,
  }
end

local function hold_pack(h)
  local attempts = {}
  for i, a in ipairs(h.attempts) do
    attempts[i] = (a.id ~= h.id and a.id or '') .. ':' .. int(a.lease) .. ':' .. int(a.seen)
  end
  return table.concat({
    h.state, h.key, int(h.expires), int(h.adoptions), table.concat(attempts, ','), int(h.units), h.subject, int(h.taken),
    h.fingerprint, h.scope, h.text,
  }, '|')
end

local function hold_is_open(h)
  return h.state == 'held' or h.state == 'pending' or h.state == 'unknown'
end

-- The backend has its booking.
local function hold_is_booked(h)
  return h.state == 'confirmed' or h.state == 'pending'
end

local function hold_is_finished(h)
  return h.state == 'lapsed' or h.state == 'released'
end

-- The place of an attempt among the unanswered ones, or nil.
local function hold_attempt(h, id)
  for i, a in ipairs(h.attempts) do
    if a.id == id then return i end
  end
end

-- An attempt that is awaited now, or nil.
local function hold_running(h, now)
  for _, a in ipairs(h.attempts) do
    if a.lease > now then return a end
  end
end
