-- Takes or renews the leadership of a pool.
--
-- KEYS  1 leadership  2 last fence  3 tombstone of this call
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 who  5 ttl, ms  6 how long the last fence is remembered, ms  7 run
-- Reply fence, 0 where another leads. A string. A copy of the call changes nothing, and
--       sees the leadership as it is by then.
--
-- The leadership is a string who|fence|until. The fence is the time in µs at which
-- the leader began, or one more than the last where that is more: it grows though the
-- last one is lost, or the clock goes back.

local now, us = clock(ARGV[1])
local ttl = tonumber(ARGV[5])
local who, fence, till = string.match(redis.call('GET', KEYS[1]) or '', '^(.*)|(%d+)|(%d+)$')
local stands = who and tonumber(till) > now

if stands and who ~= ARGV[4] then return '0' end
if finished(now, KEYS[3], KEYS[3]) then return stands and fence or '0' end
if not stands then
  fence = int(math.max(us, tonumber(redis.call('GET', KEYS[2]) or 0) + 1))
  redis.call('SET', KEYS[2], fence, 'PX', ARGV[6])
end
redis.call('SET', KEYS[1], ARGV[4] .. '|' .. fence .. '|' .. int(now + ttl), 'PX', ttl)
finish(KEYS[3], '', now)
return fence
