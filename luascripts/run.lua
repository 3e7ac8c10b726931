-- Whether the run that the gate knows is the one that stands beside the data. A store
-- that was emptied a moment ago, which no gate has noticed yet, has none. On a cluster
-- there is no epoch under the slot's hash tag; the store asks before the call.

local RUN_NOTICED = 1000 -- how long it takes a gate to notice, ms

local function run_stands(epoch)
  if not key_here(epoch) then return true end
  return string.match(redis.call('GET', epoch) or '', '^%w+|%w+|(%w+)|') == RUN
end
