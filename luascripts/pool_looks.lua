-- The looks of a pool: a zset of its slots' own texts by when a look at truth is due, ms.

-- due 0: none is.
local function looks_plan(looks, name, due, retain)
  if due == 0 then
    redis.call('ZREM', looks, name)
  else
    redis.call('ZADD', looks, int(due), name)
    redis.call('PEXPIRE', looks, int(retain))
  end
end
