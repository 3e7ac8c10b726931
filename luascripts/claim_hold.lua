-- Writes a new hold into a claim whose hold is gone, before that hold is taken (H22), on a
-- cluster.
--
-- KEYS  1 key record
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 id  5 the call that claimed  6 hold  7 run
-- Reply 1, or 0 where the claim is no longer the caller's. A string. A copy of the call
--       writes the same, or finds the claim ended.

local rec = key_load(KEYS[1], (clock(ARGV[1])))
if not key_is_claimed(rec, ARGV[4], ARGV[5]) then return '0' end
rec.hold = ARGV[6]
key_rewrite(rec, 0)
return '1'
