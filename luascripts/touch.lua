-- Marks a slot as touched by a gate that passed requests by while the store was
-- away, and registers those that are still at the backend (gate/store, "Coming
-- back"). A copy of the call changes nothing but the mark's end.
--
-- KEYS  1 slot  2 due  3 run  4 log  5 pool index, then for each request:
--       tombstone of its id, tombstone of its hold, subject in the pool, key record
--       A key that plays no part is a placeholder.
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices
--       4 slot's own text  5 retain, ms  6 gate  7 how long the mark stands, ms
--       (0 ends it), then for each request: id, hold id, units, subject hash,
--       subject text, hold_ttl in ms, lease in ms, max_per_subject, scope hash,
--       fingerprint, keyed 0|1, key ttl in ms; the last is the run
-- Reply how many requests were registered, a string.

local now, us = clock(ARGV[1])
local retain, gate, lease = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local s = slot_load({ hash = KEYS[1], due = KEYS[2], run = KEYS[3], log = KEYS[4], index = KEYS[5],
  channel = ARGV[3], name = ARGV[4] }, now, {})
local registered = 0

local function request(k, a)
  return {
    id = ARGV[a], hold = ARGV[a + 1], units = tonumber(ARGV[a + 2]), subject = ARGV[a + 3], text = ARGV[a + 4],
    hold_ttl = tonumber(ARGV[a + 5]), lease = tonumber(ARGV[a + 6]), max_per_subject = tonumber(ARGV[a + 7]),
    scope = ARGV[a + 8], fingerprint = ARGV[a + 9], keyed = ARGV[a + 10] == '1', key_ttl = tonumber(ARGV[a + 11]),
    retain = retain, attempt_grave = KEYS[k], hold_grave = KEYS[k + 1], pool_subject = KEYS[k + 2], record = KEYS[k + 3],
  }
end

-- The hold the request goes under, or nil where the store knows the request.
local function hold_for(f)
  if slot_hold(s, f.id) or slot_get(s, 't:' .. f.id) or finished(now, f.attempt_grave, f.hold_grave) then return nil end
  local h = slot_hold(s, f.hold)
  if h then return hold_is_open(h) and h or nil end
  s.adm = s.adm + f.units
  return slot_new_hold(s, f.hold, f.units, f.subject, f.text, f.fingerprint, f.scope)
end

local function register(f)
  local h = hold_for(f)
  if not h then return end
  registered = registered + 1
  h.expires = now + f.hold_ttl
  slot_start_attempt(s, h, f.id, f.lease)
  slot_move(s, h, 'held', 'forced')
  redis.call('ZADD', s.k.run, int(now + f.lease), f.id)
  pool_note(f, h, now)
  if not f.keyed then return end
  local rec = key_load(f.record, now)
  local free = rec.state == 'none' or (rec.state == 'unknown' or rec.overdue) and rec.fingerprint == f.fingerprint
  if free then key_claim(rec, f.id, h.id, f.fingerprint, f.scope, f.lease, f.key_ttl) end
end

for i = 0, (#KEYS - 5) / 4 - 1 do register(request(6 + 4 * i, 8 + 12 * i)) end
s.dirty[gate] = lease > 0 and now + lease or nil
s.dirtied = s.known or lease > 0
slot_save(s, us, retain)
return int(registered)
