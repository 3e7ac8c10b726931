-- A slot is a hash. The field s is its own state, packed as below; beside it stand
-- h:ID (hold.lua), t:ID (the hold an adopting attempt goes on under) and u:HASH
-- (subject.lua). Around it, under the same hash tag:
--
--   due   zset of hold ids: when an open hold lapses or a finished one is forgotten;
--         confirmed holds stand in a zone above all times, newest last
--   run   zset of awaited attempts by the end of their lease
--   log   stream, the ledger of transitions
--
-- A script loads the slot, changes the table, and writes it back in one slot_save.
-- The table k names the keys: hash, due, run, log, index, and the channel and the
-- slot's own text for notices and for the pool's index.

-- Joined by "|", in this order, behind the version of the form. Times are in ms.
local SLOT = {
  'exp',        -- when the idle slot is dropped
  'conf',       -- units of confirmed holds
  'held',       -- units of held, pending and unknown holds
  'adm',        -- units ever admitted
  'ref',        -- units ever returned by definite failures
  'rel',        -- the release counter
  'ver',        -- grows with every change
  'closed',     -- 1: by an operator
  'full',       -- marked full for so many units or more, 0 not
  'probeat',    -- when a lone probe may go
  'pause',      -- between two probes
  'probelease', -- until when the lone probe is awaited
  'qw',         -- until when somebody waits for room or units here
  'idx',        -- when the pool's index was last told of the slot
  'own',        -- units, set by an operator; "" as configured
  'opens',      -- opening time, set by an operator; "" as configured
  'probe',      -- the lone probe's attempt
}
local SLOT_NUMBERS = 14 -- of these, the others are text
local SLOT_FORM = '^%d+' .. string.rep('|(%d+)', SLOT_NUMBERS) .. '|(-?%d*)|(%d*)|([^|]*)$'
local CONFIRMED_ZONE = 2 ^ 52

local function slot_unpack(s, packed)
  local got = { string.match(packed, SLOT_FORM) }
  if #got ~= #SLOT then
    error({ err = 'SCHEMA ' .. s.k.hash .. ' has a state that no gate wrote' })
  end
  for i, name in ipairs(SLOT) do
    s[name] = i <= SLOT_NUMBERS and tonumber(got[i]) or got[i]
  end
end

local function slot_pack(s)
  local values = { SCHEMA }
  for i, name in ipairs(SLOT) do
    values[i + 1] = i <= SLOT_NUMBERS and int(s[name]) or s[name]
  end
  return table.concat(values, '|')
end

-- Fields named in extra are fetched along.
local function slot_load(k, now, extra)
  local got = redis.call('HMGET', k.hash, 's', unpack(extra))
  local s = {
    k = k, now = now, known = false, fields = {},
    holds = {}, subjects = {}, attempts = {}, entries = {},
    exp = 0, conf = 0, held = 0, adm = 0, ref = 0, rel = 0, ver = 0, closed = 0, full = 0,
    probeat = 0, pause = 0, probelease = 0, qw = 0, idx = 0, own = '', opens = '', probe = '',
  }
  if got[1] then
    check_schema(string.match(got[1], '^[^|]*'), k.hash)
    slot_unpack(s, got[1])
    s.known = true
    if s.exp <= now then
      redis.call('DEL', k.hash, k.due, k.run, k.log)
      return slot_load(k, now, extra)
    end
  end
  for i, name in ipairs(extra) do s.fields[name] = got[i + 1] end
  return s
end

-- A field beside the slot's own, or false.
local function slot_get(s, name)
  local value = s.fields[name]
  if value == nil then
    value = s.known and redis.call('HGET', s.k.hash, name) or false
    s.fields[name] = value
  end
  return value
end

local function slot_prefetch(s, names)
  local missing = {}
  for _, name in ipairs(names) do
    if s.fields[name] == nil then missing[#missing + 1] = name end
  end
  if #missing == 0 then return end
  local got = s.known and redis.call('HMGET', s.k.hash, unpack(missing)) or {}
  for i, name in ipairs(missing) do s.fields[name] = got[i] or false end
end

-- A hold, or nil; one that is finished and past remembering is nil too, unless
-- forgotten is asked for.
local function slot_hold(s, id, forgotten)
  local h = s.holds[id]
  if not h then
    local packed = slot_get(s, 'h:' .. id)
    if not packed then return nil end
    h = hold_parse(id, packed, s.k.hash)
    s.holds[id] = h
  end
  if not forgotten and hold_is_finished(h) and h.expires <= s.now then return nil end
  return h
end

-- Somebody waits for room or units here, and wants a notice.
local function slot_wait(s, wait)
  if s.known and s.now + wait > s.qw then
    s.qw = s.now + wait
    s.waited_for = true
  end
end

local function slot_capacity(s, configured)
  return s.own ~= '' and tonumber(s.own) or configured
end

local function slot_over(s, configured)
  local capacity = slot_capacity(s, configured)
  if capacity == LEARNED then return 0 end
  return math.max(0, s.conf + s.held - capacity)
end
