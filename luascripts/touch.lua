-- Marks a slot as touched by a gate that passed requests by while the store was
-- away, and registers those that are still at the backend; or ends the mark
-- (gate/store, "Coming back").
--
-- KEYS  1 slot  2 due  3 log  4 pool index  5 pool outbox  6 pool looks
--       7 tombstone of this call, then for each request: tombstone of its id, subject in the pool, key record
--       A key that plays no part is a placeholder; on a cluster, KEYS[1].
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices
--       4 slot's own text  5 retain, ms  6 keep_unknown 0|1  7 gate
--       8 how long the mark stands, ms (0 ends it)  9 truth 0 none|1 total|2 remaining, then for each request: id, hold id,
--       units, subject hash, subject text, hold_ttl in ms, lease in ms,
--       max_per_subject, scope hash, fingerprint, key's short hash ("" none), key ttl in ms; the last
--       is the run
-- Reply how many requests were registered, a string. A copy of the call changes
--       nothing: it may come after the mark was ended, or set anew. On a cluster, as
--       slot_reply says, and a list: behind it the ids of the requests that have not been
--       answered, each with its hold and whether this call registered it 0|1: their keys are
--       to be claimed (claim_forced.lua).

local now, us = clock(ARGV[1])
local retain, keep_unknown, gate, lease = tonumber(ARGV[5]), ARGV[6] == '1', ARGV[7], tonumber(ARGV[8])
local s = slot_load(slot_keys(ARGV[4], KEYS[6], ARGV[3]), now, ARGV[9], {})

local function request(k, a)
  return {
    id = ARGV[a], hold = ARGV[a + 1], units = tonumber(ARGV[a + 2]), subject = ARGV[a + 3], text = ARGV[a + 4],
    hold_ttl = tonumber(ARGV[a + 5]), lease = tonumber(ARGV[a + 6]), max_per_subject = tonumber(ARGV[a + 7]),
    scope = ARGV[a + 8], fingerprint = ARGV[a + 9], key = ARGV[a + 10], key_ttl = tonumber(ARGV[a + 11]),
    retain = retain, keep_unknown = keep_unknown, grave = KEYS[k], pool_subject = key_here(KEYS[k + 1]), record = key_here(KEYS[k + 2]),
  }
end

local function known(f)
  return slot_hold(s, f.id) or s.attempts[f.id] or slot_get(s, 't:' .. f.id) or slot_finished(s, f.grave, f.grave)
end

-- The hold the request goes under, or nil where that is booked. One that is gone
-- counts again: its units are at the backend.
local function hold_for(f)
  local h = slot_hold(s, f.hold)
  if h and hold_is_open(h) and h.state ~= 'pending' and h.expires ~= KEPT then return h end
  if h and not hold_is_finished(h) then return nil end
  s.adm = s.adm + f.units
  return h or slot_new_hold(s, f.hold, f.units, f.subject, f.text, f.fingerprint, f.scope, f.key)
end

local function register(f)
  local h = not known(f) and hold_for(f)
  if not h then return 0 end
  h.expires = now + f.hold_ttl
  f.registered = true
  slot_keyed(s, f.key, math.max(f.key_ttl, f.lease))
  if f.key ~= h.key then slot_stray(s, f.key) end
  slot_start_attempt(s, h, f.id, f.lease)
  slot_move(s, h, 'held', 'forced')
  if f.pool_subject then pool_note(f, s, h) end
  if f.key ~= '' and f.record then claim_forced(key_load(f.record, now), f, h.id) end
  return 1
end

-- What the gate must carry to other shards, of all requests: it may not have got there
-- when an earlier copy registered them.
local function reply(registered, forced)
  if s.k.index then return int(registered) end
  local unanswered = { int(registered) }
  for _, f in ipairs(forced) do
    local h = slot_hold(s, f.hold)
    if h then pool_note(f, s, h) end
    if h and hold_attempt(h, f.id) then
      unanswered[#unanswered + 1] = f.id
      unanswered[#unanswered + 1] = h.id
      unanswered[#unanswered + 1] = f.registered and '1' or '0'
    end
  end
  return slot_reply(s, us, unanswered)
end

local registered, forced = 0, {}
for i = 0, (#KEYS - 7) / 3 - 1 do forced[#forced + 1] = request(8 + 3 * i, 10 + 12 * i) end
if not finished(now, KEYS[7], KEYS[7]) then
  for _, f in ipairs(forced) do registered = registered + register(f) end
  if lease > 0 then
    s.dirty[gate], s.dirtied = now + lease, true
    if s.v then s.v.at, s.retold = us, true end -- looks under way know nothing of this
  elseif s.dirty[gate] then
    s.dirty[gate] = nil
    slot_undirty(s)
  end
  if s.dirtied then finish(KEYS[7], '', now) end
  slot_save(s, us, retain)
end
return reply(registered, forced)
