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
