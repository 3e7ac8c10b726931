-- Settle: how a request that was admitted ended. See gate/store, "What settle
-- does". The slot is settled first, then the key (H20). On a cluster it is the slot's
-- part alone, or a guard's (claim_settle.lua has the key's).
--
-- KEYS  1 slot  2 due  3 log  4 pool index  5 pool outbox  6 pool looks
--       7 tombstone of the attempt  8 tombstone of the hold
--       9 subject in the pool  10 key record  11 the answer left for twins
--       12 the booking's reference
--       A key that plays no part is a placeholder; on a cluster, KEYS[1].
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed: the second time finds the
--       attempt settled)  3 channel of notices  4 id  5 outcome
--       6 gated 0|1  7 hold id  8 slot's own text  9 units  10 capacity, -1 learned
--       11 hold_ttl, ms  12 retain, ms  13 max_per_subject  14 keep_unknown 0|1
--       15 release counter seen  16 probe 0|1  17 subject hash  18 subject text
--       19 keyed 0|1  20 key ttl, ms  21 keep 0|1  22 answer  23 scope hash
--       24 fingerprint  25 action 0 book|1 cancel|2 confirm
--       26 truth 0 none|1 total|2 remaining  27 pending ttl, ms (0 none)
--       28 reference, "" none  29 key's short hash, "" none  30 run
-- Reply applied 0|1, the hold's state, late 0|1, units oversold, look 0|1. All are
--       strings. On a cluster, as slot_reply says, and with a last one: never seen 0|1.

local now, us = clock(ARGV[1])
local gated, keyed = ARGV[6] == '1', ARGV[19] == '1'
local d = {
  id = ARGV[4], outcome = ARGV[5], hold = ARGV[7], units = tonumber(ARGV[9]),
  capacity = tonumber(ARGV[10]), hold_ttl = tonumber(ARGV[11]), retain = tonumber(ARGV[12]),
  max_per_subject = tonumber(ARGV[13]), keep_unknown = ARGV[14] == '1', seen = tonumber(ARGV[15]),
  probe = ARGV[16] == '1', subject = ARGV[17], text = ARGV[18], scope = ARGV[23], fingerprint = ARGV[24],
  attempt_grave = KEYS[7], hold_grave = KEYS[8], pool_subject = key_here(KEYS[9]), reference_key = key_here(KEYS[12]),
  key_ttl = tonumber(ARGV[20]), keep = ARGV[21] == '1', answer = ARGV[22], channel = ARGV[3],
  books = ARGV[25] == '0', confirms = ARGV[25] == '2', truth = ARGV[26], pending_ttl = tonumber(ARGV[27]),
  reference = ARGV[28], key = ARGV[29],
}
local r = { applied = false, state = '', late = false, oversold = 0, look = false }

local s
if gated then
  s = slot_load(slot_keys(ARGV[8]), now, d.truth, { 'h:' .. d.hold, 'u:' .. d.subject, 'w:' .. d.subject })
  if d.books then
    settle_slot(d, r, s)
  else
    settle_cancel(d, r, s)
  end
  slot_save(s, us, d.retain)
end
if keyed then settle_key(d, r, key_load(KEYS[10], now), KEYS[11], gated) end
local reply = { r.applied and '1' or '0', r.state, r.late and '1' or '0', int(r.oversold), r.look and '1' or '0' }
if s and not s.k.index then reply[6] = r.unseen and '1' or '0' end
return gated and slot_reply(s, us, reply) or reply
