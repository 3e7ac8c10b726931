-- What nginx with Lua would ask before it forwards, if it promised what the gate does: a
-- key is claimed, a student has a lesson once, seats are counted, what is held lapses,
-- and all of it is in a ledger. It is the least that does so: no limits, no lapsing, no
-- answer for what is cancelled or waits.
--
-- KEYS 1 slot  2 what is due  3 ledger  4 the request's key
-- ARGV 1 id  2 student  3 fingerprint  4 seats  5 now, ms
-- returns admitted, sold_out, duplicate, or what the key's record says
local id, student, fingerprint, now = ARGV[1], ARGV[2], ARGV[3], ARGV[5]
if not redis.call('SET', KEYS[4], 'running|' .. fingerprint .. '|' .. id, 'NX', 'PX', '86400000') then
	return redis.call('GET', KEYS[4])
end
local slot = redis.call('HMGET', KEYS[1], 'taken', 'student:' .. student)
local taken = tonumber(slot[1] or 0)
if slot[2] or taken >= tonumber(ARGV[4]) then
	redis.call('DEL', KEYS[4])
	return slot[2] and 'duplicate' or 'sold_out'
end
redis.call('ZADD', KEYS[2], string.format('%d', now + 30000), id)
redis.call('XADD', KEYS[3], 'MAXLEN', '~', '1000', '*', 'e', now .. '|' .. id .. '|' .. student .. '|1||held|decide')
redis.call('HSET', KEYS[1], 'taken', string.format('%d', taken + 1), 'student:' .. student, id, 'hold:' .. id, 'held|' .. student)
return 'admitted'
