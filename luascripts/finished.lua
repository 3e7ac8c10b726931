-- Tombstones: a finished id, or one refused call of it, for as long as a copy may
-- still arrive. One string key each, so that they go by themselves. The value is
-- state|expires: what the hold had become ("" nothing), and when this is forgotten.

local function finish(key, state, now)
  redis.call('SET', key, state .. '|' .. int(now + COPY_WINDOW), 'PX', COPY_WINDOW)
end

-- The state in the first of two tombstones that stands, or nil.
local function finished(now, first, second)
  local found = redis.call('MGET', first, second)
  for i = 1, 2 do
    if found[i] then
      local state, expires = string.match(found[i], '^(%a*)|(%d+)$')
      if state and tonumber(expires) > now then return state end
    end
  end
end
