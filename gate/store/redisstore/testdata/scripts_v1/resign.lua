#!lua
local function clock(ahead)
  local t = redis.call('TIME')
  local us = t[1] * 1000000 + t[2] + ahead * 1000
  return math.floor(us / 1000), us
end
local function int(n)
  return string.format('%d', n)
end
local function finish(key, state, now, subject)
  local value = state .. '|' .. int(now + (30000))
  if subject and subject ~= '' then value = value .. '|' .. subject end
  redis.call('SET', key, value, 'PX', (30000))
end
local function finished(now, first, second)
  local found = redis.call('MGET', first, second)
  for i = 1, 2 do
    if found[i] then
      local state, expires, subject = string.match(found[i], '^(%a*)|(%d+)|?(.*)$')
      if state and tonumber(expires) > now then return state, subject end
    end
  end
end
local now = clock(ARGV[1])
local who = string.match(redis.call('GET', KEYS[1]) or '', '^(.*)|%d+|%d+$')
if who ~= ARGV[4] or finished(now, KEYS[2], KEYS[2]) then return '0' end
redis.call('DEL', KEYS[1])
finish(KEYS[2], '', now)
return '1'
