-- Hands out the slots of a pool whose look is due, soonest first. One that was handed
-- out is due again after the lease, unless its apply says otherwise.
--
-- KEYS  1 pool looks
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 how many at most  5 lease, ms  6 run
-- Reply how long until another is due, ms (-1 none is), then the slots' own texts. All
--       are strings. A copy of the call hands out others; those of a lost reply come
--       back after the lease.

local now = clock(ARGV[1])
local most, lease = tonumber(ARGV[4]), tonumber(ARGV[5])

local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', int(now), 'LIMIT', 0, most)
if #due > 0 then
  local again = {}
  for _, name in ipairs(due) do
    again[#again + 1] = int(now + lease)
    again[#again + 1] = name
  end
  redis.call('ZADD', KEYS[1], unpack(again)) -- all stand there: the key keeps its ttl
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local reply = { first[2] and int(math.max(0, tonumber(first[2]) - now)) or '-1' }
for _, name in ipairs(due) do reply[#reply + 1] = name end
return reply
