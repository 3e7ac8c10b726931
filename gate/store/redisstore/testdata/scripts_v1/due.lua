#!lua
local function clock(ahead)
  local t = redis.call('TIME')
  local us = t[1] * 1000000 + t[2] + ahead * 1000
  return math.floor(us / 1000), us
end
local function int(n)
  return string.format('%d', n)
end
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
