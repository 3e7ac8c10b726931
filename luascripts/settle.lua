-- Settle: how a request that was admitted ended. See gate/store, "What settle
-- does". The slot is settled first, then the key (H20). On a cluster it is the slot's
-- part alone, or a guard's (claim_settle.lua has the key's).
--
-- KEYS  1 slot  2 due  3 log  4 pool index  5 pool outbox  6 tombstone of the attempt
--       7 key record  8 the answer left for twins  9 pool looks  10 tombstone of the hold,
--       where it is not the attempt's  11 subject in the pool  12 the booking's reference
--       A key that plays no part is a placeholder, on a cluster KEYS[1], or not given
--       where none follows that plays one.
-- ARGV  1 as MessagePack, one value after the other; times in ms, what is asked with "?"
--         true or false, numbers in "" as text:
--         usual? (settle_usual.lua may look at it)  resent? (not needed: the second time
--         finds the attempt settled)  clock ahead
--         id  h:hold id  f:hold id  u:subject hash  subject hash  units  "units"  retain
--         keyed?  key's short hash, "" none  |fingerprint|scope hash|id|id||, as a record
--         ends that this attempt owns  "key ttl", and where the backend named the
--         booking: its reference, hold id|slot's own text, else nil and nil
--         then what is not usual
--         outcome  gated? (has a slot)  hold id  slot's own text  capacity, -1 learned
--         hold_ttl  max_per_subject  keep_unknown?  release counter seen  probe?
--         subject text  keep?  action 0 book|1 cancel|2 confirm
--         truth "0" none|"1" total|"2" remaining  pending ttl (0 none)
--         channel of notices
--       2 answer  3 run
-- Reply one text of these with "|" between: applied 0|1, the hold's state, late 0|1, units
--       oversold, look 0|1. On a cluster, as slot_reply says, and with a last one: never
--       seen 0|1.

local _, _, ahead, id, hold_field, note_field, subject_field, subject, units, _, retain, keyed, key, owned, key_ttl, reference, _,
  outcome, gated, hold, name, capacity, hold_ttl, max_per_subject, keep_unknown, seen, probe, text, keep, action, truth,
  pending_ttl, channel = cmsgpack.unpack(ARGV[1])
local now, us = clock(ahead)
local fingerprint, scope = string.match(owned, '^|([^|]*)|([^|]*)|')
local d = {
  id = id, outcome = outcome, hold = hold, units = units, capacity = capacity, hold_ttl = hold_ttl, retain = retain,
  max_per_subject = max_per_subject, keep_unknown = keep_unknown, seen = seen, probe = probe, subject = subject, text = text,
  scope = scope, fingerprint = fingerprint, attempt_grave = KEYS[6], hold_grave = hold == id and KEYS[6] or KEYS[10],
  pool_subject = key_here(KEYS[11]), reference_key = key_here(KEYS[12]),
  key_ttl = tonumber(key_ttl), keep = keep, answer = ARGV[2], channel = channel,
  books = action == 0, confirms = action == 2, truth = truth, pending_ttl = pending_ttl, reference = reference or '', key = key,
}
local r = { applied = false, state = '', late = false, oversold = 0, look = false }

local s
if gated then
  s = slot_load(slot_keys(name, KEYS[9], channel), now, d.truth, { hold_field, note_field, subject_field })
  if d.books then
    settle_slot(d, r, s)
  else
    settle_cancel(d, r, s)
  end
  slot_save(s, us, d.retain)
end
if keyed then settle_key(d, r, key_load(KEYS[7], now), KEYS[8], gated) end
local reply = table.concat({ r.applied and '1' or '0', r.state, r.late and '1' or '0', int(r.oversold), r.look and '1' or '0' }, '|')
if s and not s.k.index then reply = reply .. (r.unseen and '|1' or '|0') end
return gated and slot_reply(s, us, reply) or reply
