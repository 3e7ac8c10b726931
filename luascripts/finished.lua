-- Tombstones: a finished id, or one refused call of it, for as long as a copy may
-- still arrive. One string key each, so that they go by themselves. The value is
-- state|expires|subject hash: what the hold had become ("" nothing), when this is
-- forgotten, and whose it was; the last with its "|" only where it was somebody's.

local function finish(key, state, now, subject)
  local value = state .. '|' .. int(now + COPY_WINDOW)
  if subject and subject ~= '' then value = value .. '|' .. subject end
  redis.call('SET', key, value, 'PX', COPY_WINDOW)
end

-- The state, and the subject, in the first of two tombstones that stands, or nil.
local function finished(now, first, second)
  local found = redis.call('MGET', first, second)
  for i = 1, 2 do
    if found[i] then
      local state, expires, subject = string.match(found[i], '^(%a*)|(%d+)|?(.*)$')
      if state and tonumber(expires) > now then return state, subject end
    end
  end
end
