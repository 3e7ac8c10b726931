-- What nginx with Lua does instead of a gate: repeats are told by their key, seats
-- are tokens. It is the least that does both: two calls to admit, three to refuse.
--
-- KEYS 1 the request's key   2 the slot's counter of seats left
-- ARGV none
-- returns 1 admitted, 0 sold out, 2 the key was seen before
if redis.call('DECR', KEYS[2]) < 0 then
	redis.call('INCR', KEYS[2])
	return redis.call('EXISTS', KEYS[1]) * 2
end
if not redis.call('SET', KEYS[1], '1', 'NX', 'EX', 86400) then
	redis.call('INCR', KEYS[2])
	return 2
end
return 1
