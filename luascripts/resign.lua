-- Gives the leadership of a pool up: compare, then delete.
--
-- KEYS  1 leadership  2 tombstone of this call
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 who  5 run
-- Reply 1 if who led, else 0. A string. A copy of the call changes nothing: who may
--       have taken the leadership anew.

local now = clock(ARGV[1])
local who = string.match(redis.call('GET', KEYS[1]) or '', '^(.*)|%d+|%d+$')
if who ~= ARGV[4] or finished(now, KEYS[2], KEYS[2]) then return '0' end
redis.call('DEL', KEYS[1])
finish(KEYS[2], '', now)
return '1'
