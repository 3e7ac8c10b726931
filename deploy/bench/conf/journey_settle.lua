-- What nginx with Lua would tell Redis of a booking that the backend took, if it promised
-- what the gate does: see journey_decide.lua.
--
-- KEYS 1 slot  2 what is due  3 ledger  4 the request's key
-- ARGV 1 id  2 student  3 fingerprint  4 answer  5 now, ms
-- returns 1, or 0 if it was settled before
local id, student = ARGV[1], ARGV[2]
local field = 'hold:' .. id
if redis.call('HGET', KEYS[1], field) ~= 'held|' .. student then return 0 end
redis.call('ZREM', KEYS[2], id)
redis.call('XADD', KEYS[3], 'MAXLEN', '~', '1000', '*', 'e', ARGV[5] .. '|' .. id .. '|' .. student .. '|1|held|confirmed|booked')
redis.call('HSET', KEYS[1], field, 'confirmed|' .. student)
redis.call('SET', KEYS[4], 'done|' .. ARGV[3] .. '|' .. ARGV[4], 'PX', '86400000')
return 1
