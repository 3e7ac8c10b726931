-- A slot is a hash. Its own fields are below; beside them stand h:ID (hold.lua),
-- t:ID (the hold an adopting attempt goes on under) and u:HASH (subject.lua).
-- Around it, under the same hash tag:
--
--   due   zset of hold ids: when an open hold lapses or a finished one is forgotten;
--         confirmed holds stand in a zone above all times, newest last
--   run   zset of awaited attempts by the end of their lease
--   log   stream, the ledger of transitions
--
-- A script loads the slot, changes the table, and writes it back in one slot_save.
-- The table k names the keys: hash, due, run, log, index, and the channel and the
-- slot's own name for notices and for the pool's index.

local SLOT_NUMBERS = {
  'exp',       -- when the idle slot is dropped
  'conf',      -- units of confirmed holds
  'held',      -- units of held, pending and unknown holds
  'adm',       -- units ever admitted
  'ref',       -- units ever returned by definite failures
  'rel',       -- the release counter
  'closed',    -- 1: by an operator
  'ver',       -- grows with every change
  'full',      -- marked full for so many units or more, 0 not
  'probeat',   -- when a lone probe may go
  'pause',     -- between two probes, in ms
  'probelease',-- until when the lone probe is awaited
  'qw',        -- until when somebody waits for room or units here
  'idx',       -- when the pool's index was last told of the slot
}
local SLOT_TEXTS = {
  'own',       -- units, set by an operator; "" as configured
  'opens',     -- opening time in ms, set by an operator; "" as configured
  'probe',     -- the lone probe's attempt
}
local CONFIRMED_ZONE = 2 ^ 52

-- Fields named in extra are fetched along.
local function slot_load(k, now, extra)
  local names = { 'v' }
  for _, name in ipairs(SLOT_NUMBERS) do names[#names + 1] = name end
  for _, name in ipairs(SLOT_TEXTS) do names[#names + 1] = name end
  local own = #names
  for _, name in ipairs(extra) do names[#names + 1] = name end
  local got = redis.call('HMGET', k.hash, unpack(names))
  check_schema(got[1], k.hash)
  if got[2] and tonumber(got[2]) <= now then
    redis.call('DEL', k.hash, k.due, k.run, k.log)
    got = {}
  end
  local s = {
    k = k, now = now, known = got[1] and true or false, was = {}, fields = {},
    holds = {}, subjects = {}, attempts = {}, entries = {},
  }
  local at = 1
  for _, name in ipairs(SLOT_NUMBERS) do
    at = at + 1
    s[name] = tonumber(got[at] or 0)
    s.was[name] = s[name]
  end
  for _, name in ipairs(SLOT_TEXTS) do
    at = at + 1
    s[name] = got[at] or ''
    s.was[name] = s[name]
  end
  for i, name in ipairs(extra) do s.fields[name] = got[own + i] or false end
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

local function slot_capacity(s, configured)
  return s.own ~= '' and tonumber(s.own) or configured
end

local function slot_over(s, configured)
  local capacity = slot_capacity(s, configured)
  if capacity == LEARNED then return 0 end
  return math.max(0, s.conf + s.held - capacity)
end
