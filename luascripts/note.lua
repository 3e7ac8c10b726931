-- Notes what became of a hold among what its subject has in the pool, as the hold's slot
-- told (slot_reply in slot_save.lua), on a cluster.
--
-- KEYS  1 subject in the pool
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 hold  5 units, 0 finished  6 for how long, ms  7 the slot's time, µs
--       8 how long the subject is remembered, ms  9 run
-- Reply 1, or 0 where it, or a later note, stands. A string. A copy of the call, and one
--       that was overtaken, finds that, also of a finished hold for the copy window. One
--       that comes after that is no news, whatever stands.

local now = clock(ARGV[1])
if now - tonumber(ARGV[7]) / 1000 > COPY_WINDOW then return '0' end
local expires, noted = string.match(redis.call('HGET', KEYS[1], ARGV[4]) or '', '^%d+:(%d+):(%d+)$')
if noted and tonumber(expires) > now and tonumber(noted) >= tonumber(ARGV[7]) then return '0' end
redis.call('HSET', KEYS[1], ARGV[4], ARGV[5] .. ':' .. int(now + tonumber(ARGV[6])) .. ':' .. ARGV[7])
redis.call('PEXPIRE', KEYS[1], ARGV[8])
return '1'
