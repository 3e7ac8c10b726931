-- Claims the key of a request that a gate passed by and that is unanswered (touch.lua), on a
-- cluster.
--
-- KEYS  1 key record  2 tombstone of the id
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 id  5 hold  6 lease, ms  7 key ttl, ms  8 scope hash  9 fingerprint  10 run
-- Reply 1. A string. Running it twice claims once: the key is the request's then, or it has
--       been settled.

local now = clock(ARGV[1])
if finished(now, KEYS[2], KEYS[2]) then return '1' end
local rec = key_load(KEYS[1], now)
local f = { id = ARGV[4], lease = tonumber(ARGV[6]), key_ttl = tonumber(ARGV[7]), scope = ARGV[8], fingerprint = ARGV[9] }
if rec.state == 'none' or rec.owner ~= f.id then claim_forced(rec, f, ARGV[5]) end
return '1'
