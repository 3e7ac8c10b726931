-- Takes back what reserve.lua wrote for a hold that was not taken, on a cluster.
--
-- KEYS  1 subject in the pool
-- ARGV  1 clock ahead, ms (not needed)  2 resent 0|1 (not needed)  3 channel of notices (not
--       needed)  4 hold  5 what was written  6 run
-- Reply 1 if it stood there still, else 0. A string. A copy of the call finds it gone, or
--       another in its place.

if redis.call('HGET', KEYS[1], ARGV[4]) ~= ARGV[5] then return '0' end
redis.call('HDEL', KEYS[1], ARGV[4])
return '1'
