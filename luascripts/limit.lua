-- Rate limits as GCRA: a string holding the theoretical arrival time in
-- microseconds and the id it was last charged for, tat|id. A limit is a table
-- {key, interval, burst}: microseconds between two events, events at once.

local function limit_stand(state, us)
  local limit = state.limit
  local left = limit.interval * limit.burst - (state.tat - us)
  state.remaining = math.max(0, math.floor(left / limit.interval))
  state.reset = math.ceil((state.tat - us) / 1000)
end

-- Looks without writing. The state says whether one more event passes, and where
-- the limit stands.
local function limit_look(limit, us, id, resent)
  local tat, last = us, ''
  local stored = redis.call('GET', limit.key)
  if stored then
    local text
    text, last = string.match(stored, '^(%d+)|(.*)$')
    tat = math.max(us, tonumber(text or us))
  end
  local state = { limit = limit, tat = tat, passes = true }
  local span = limit.interval * limit.burst
  if resent and last == id then
    -- The first copy of this call has been charged already.
    state.charged = true
  elseif tat + limit.interval - span > us then
    state.passes = false
    state.retry = math.ceil((tat + limit.interval - span - us) / 1000)
  end
  limit_stand(state, us)
  return state
end

local function limit_charge(state, us, id)
  if state.charged then return end
  state.tat = state.tat + state.limit.interval
  limit_stand(state, us)
  redis.call('SET', state.limit.key, int(state.tat) .. '|' .. id,
    'PX', int(math.max(1, math.ceil((state.tat - us) / 1000))))
end

-- How a limit stands, as decide replies it.
local function limit_text(state)
  return state.limit.name .. ':' .. int(state.remaining) .. ':' .. int(state.reset)
end
