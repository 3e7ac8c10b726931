-- Gives a claim back whose request was not admitted, on a cluster: the key is as it was
-- before, and twins are woken.
--
-- KEYS  1 key record  2 tombstone of the call that claimed
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices  4 id
--       5 the call that claimed  6 that call was resent 0|1  7 the owner that the key had
--       before, "" none  8 the hold it went under  9 its state then  10 run
-- Reply 1, or 0 where the claim is no longer the caller's. A string. A copy of the call
--       finds the claim ended.

local now = clock(ARGV[1])
local rec = key_load(KEYS[1], now)
if ARGV[6] == '1' then finish(KEYS[2], '', now) end
if not key_is_claimed(rec, ARGV[4], ARGV[5]) then return '0' end
if ARGV[7] == '' then
  redis.call('DEL', rec.key)
else
  redis.call('HSET', rec.key, 'st', ARGV[9], 'own', ARGV[7], 'hold', ARGV[8], 'lease', '0')
end
key_tell(rec, ARGV[3])
return '1'
