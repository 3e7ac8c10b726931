-- Who has what: on a slot, a field u:HASH of
--
--   how many confirmed and pending holds|ids of those that are open or have an attempt
--   unanswered, with "," between|ids of the booked ones, up to SUBJECT_SCAN
--
-- beside it, only while there is one, s:HASH, the id of a booked hold that stands in for a
-- booking which nobody has told of (settle_slot.lua); and over a pool, what
-- pool_subject.lua says.

local SUBJECT = '^(%d+)|([^|]*)|(.*)$'

local function subject_ids(list)
  local ids = {}
  for id in string.gmatch(list or '', '[^,]+') do ids[#ids + 1] = id end
  return ids
end

local function slot_subject(s, hash)
  local subject = s.subjects[hash]
  if not subject then
    local booked, open, ids = string.match(slot_get(s, 'u:' .. hash) or '', SUBJECT)
    subject = { booked = tonumber(booked or 0), holds = subject_ids(open), ids = subject_ids(ids) }
    s.subjects[hash] = subject
  end
  return subject
end

-- The hold that stands in for a booking of the subject, nil or false if none does.
local function slot_stand_in(s, hash)
  local subject = slot_subject(s, hash)
  if subject.booked == 0 then return nil end
  if subject.stand_in == nil then subject.stand_in = slot_get(s, 's:' .. hash) end
  return subject.stand_in
end

local function slot_stands_in(s, hash, id)
  local subject = slot_subject(s, hash)
  subject.stand_in, subject.stood = id, true
end

-- Counts and lists a hold that became, or no longer is, booked.
local function slot_subject_count(s, h, from)
  local booked, was = hold_is_booked(h), from == 'confirmed' or from == 'pending'
  if h.subject == '' or booked == was then return end
  local subject = slot_subject(s, h.subject)
  local ids = subject.ids
  if was and slot_stand_in(s, h.subject) == h.id then slot_stands_in(s, h.subject, false) end
  subject.booked = math.max(0, subject.booked + (booked and 1 or -1))
  subject.changed = true
  if booked then
    if #ids < SUBJECT_SCAN then ids[#ids + 1] = h.id end
    return
  end
  for i, id in ipairs(ids) do
    if id == h.id then return table.remove(ids, i) end
  end
end

-- Puts a hold that is about to be written on the list, or takes it off.
local function slot_subject_list(s, h, listed)
  if h.subject == '' then return end
  local subject = slot_subject(s, h.subject)
  for i, id in ipairs(subject.holds) do
    if id == h.id then
      if not listed then
        table.remove(subject.holds, i)
        subject.changed = true
      end
      return
    end
  end
  if listed then
    subject.holds[#subject.holds + 1] = h.id
    subject.changed = true
  end
end

-- Has the gate note that a hold counts for so long, or, with 0 units, no longer.
local function pool_tell(s, id, subject, units, ttl)
  s.pooled[#s.pooled + 1] = { id, subject, int(units), int(ttl) }
end

-- Notes what became of a hold. d says whether the pool counts at all
-- (max_per_subject), under which key (pool_subject; nil where it is on another shard)
-- and for how long.
local function pool_note(d, s, h)
  if d.max_per_subject == 0 or h.subject == '' then return end
  if hold_is_finished(h) then
    if not d.pool_subject then return pool_tell(s, h.id, h.subject, 0, COPY_WINDOW) end
    redis.call('HDEL', d.pool_subject, h.id)
    return
  end
  local lapses = not d.keep_unknown
  if h.state == 'pending' then lapses = d.truth == TRUTH_REMAINING end
  local expires = lapses and h.expires > KEPT and h.expires or s.now + d.retain
  if not d.pool_subject then return pool_tell(s, h.id, h.subject, h.units, math.max(1, expires - s.now)) end
  redis.call('HSET', d.pool_subject, h.id, int(h.units) .. ':' .. int(expires))
  redis.call('PEXPIRE', d.pool_subject, int(d.retain))
end
