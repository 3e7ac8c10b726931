-- Gives a claim back whose request was not admitted, on a cluster: the key is as it was
-- before, and twins are woken.
--
-- KEYS  1 key record
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices  4 id
--       5 the call that claimed  6 the owner that the key had before, "" none  7 the hold it
--       went under  8 its state then  9 run
-- Reply 1, or 0 where the claim is no longer the caller's. A string. A copy of the call
--       finds the claim ended.

local rec = key_load(KEYS[1], (clock(ARGV[1])))
if not key_is_claimed(rec, ARGV[4], ARGV[5]) then return '0' end
if ARGV[6] == '' then
  redis.call('DEL', rec.key)
else
  rec.state, rec.owner, rec.hold, rec.lease = ARGV[8], ARGV[6], ARGV[7], 0
  key_rewrite(rec, 0)
end
key_tell(rec, ARGV[3])
return '1'
