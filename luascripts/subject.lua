-- Who has what: on a slot, a field u:HASH of "confirmed|id,id,…" (how many confirmed
-- holds, and the ids of those that are open or have an attempt unanswered); over a
-- pool, a hash of its own, hold id → units:expires. The pool's entries expire by
-- themselves, so that a lapse in another slot's script need not reach them.

local function slot_subject(s, hash)
  local subject = s.subjects[hash]
  if not subject then
    local confirmed, listed = string.match(slot_get(s, 'u:' .. hash) or '', '^(%d+)|(.*)$')
    subject = { confirmed = tonumber(confirmed or 0), holds = {} }
    for id in string.gmatch(listed or '', '[^,]+') do
      subject.holds[#subject.holds + 1] = id
    end
    s.subjects[hash] = subject
  end
  return subject
end

-- Counts a hold that became, or no longer is, confirmed.
local function slot_subject_count(s, h, from)
  if h.subject == '' or (h.state == 'confirmed') == (from == 'confirmed') then return end
  local subject = slot_subject(s, h.subject)
  subject.confirmed = subject.confirmed + (h.state == 'confirmed' and 1 or -1)
  subject.changed = true
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

-- Units the subject has in the pool, leaving out one hold; expired entries go.
local function pool_units(key, now, but)
  local units, expired = 0, {}
  local entries = redis.call('HGETALL', key)
  for i = 1, #entries, 2 do
    local n, expires = string.match(entries[i + 1], '^(%d+):(%d+)$')
    if not n or tonumber(expires) <= now then
      expired[#expired + 1] = entries[i]
    elseif entries[i] ~= but then
      units = units + tonumber(n)
    end
  end
  if #expired > 0 then redis.call('HDEL', key, unpack(expired, 1, math.min(#expired, 1000))) end
  return units
end

-- Notes what became of a hold. d says whether the pool counts at all
-- (max_per_subject), under which key (pool_subject) and for how long.
local function pool_note(d, h, now)
  if d.max_per_subject == 0 or h.subject == '' then return end
  if hold_is_finished(h) then
    redis.call('HDEL', d.pool_subject, h.id)
    return
  end
  local expires = h.expires
  if h.state == 'confirmed' or d.keep_unknown then expires = now + d.retain end
  redis.call('HSET', d.pool_subject, h.id, int(h.units) .. ':' .. int(expires))
  redis.call('PEXPIRE', d.pool_subject, int(d.retain))
end
