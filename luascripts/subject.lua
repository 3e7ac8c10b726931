-- Who has what: on a slot, a field u:HASH of "confirmed|open,open,…" (a count, and
-- the ids of open holds); over a pool, a hash of its own, hold id → units:expires.
-- The pool's entries expire by themselves, so that a lapse in another slot's script
-- need not reach them.

local function slot_subject(s, hash)
  local subject = s.subjects[hash]
  if not subject then
    local confirmed, open = string.match(slot_get(s, 'u:' .. hash) or '', '^(%d+)|(.*)$')
    subject = { confirmed = tonumber(confirmed or 0), open = {} }
    for id in string.gmatch(open or '', '[^,]+') do
      subject.open[#subject.open + 1] = id
    end
    s.subjects[hash] = subject
  end
  return subject
end

-- Notes that a hold of the subject came to be, became final or ended.
local function slot_subject_note(s, h, was_open, was_confirmed)
  if h.subject == '' then return end
  local subject = slot_subject(s, h.subject)
  local open, confirmed = hold_is_open(h), h.state == 'confirmed'
  if confirmed ~= was_confirmed then
    subject.confirmed = subject.confirmed + (confirmed and 1 or -1)
  end
  if open and not was_open then
    subject.open[#subject.open + 1] = h.id
  elseif was_open and not open then
    for i, id in ipairs(subject.open) do
      if id == h.id then
        table.remove(subject.open, i)
        break
      end
    end
  end
  subject.changed = true
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

local function pool_note(key, h, now, retain)
  if hold_is_finished(h) then
    redis.call('HDEL', key, h.id)
    return
  end
  local expires = h.expires
  if h.state == 'confirmed' or expires == 0 then expires = now + retain end
  redis.call('HSET', key, h.id, int(h.units) .. ':' .. int(expires))
  redis.call('PEXPIRE', key, int(math.max(retain, expires - now)))
end
