-- Charges one limit of a decide, on a cluster.
--
-- KEYS  1 limit  2 tombstone of this call
-- ARGV  1 clock ahead, ms  2 resent 0|1  3 channel of notices (not needed)  4 id
--       5 interval, µs  6 burst  7 run
-- Reply passes 0|1, remaining, reset in ms, retry after in ms. All are strings. A second
--       copy finds its id charged, unless another was charged since; a late first one finds
--       a tombstone.

local now, us = clock(ARGV[1])
if finished(now, KEYS[2], KEYS[2]) then return { '0', '0', '0', '0' } end
if ARGV[2] == '1' then finish(KEYS[2], '', now) end
local limit = { key = KEYS[1], interval = tonumber(ARGV[5]), burst = tonumber(ARGV[6]) }
local state = limit_look(limit, us, ARGV[4], ARGV[2] == '1')
if state.passes then limit_charge(state, us, ARGV[4]) end
return { state.passes and '1' or '0', int(state.remaining), int(state.reset), int(state.retry or 0) }
