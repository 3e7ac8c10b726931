-- Takes entries of a slot's ledger that are not in the pool's outbox yet, on a cluster. Who
-- took them puts them there (publish.lua), then says so (shipped.lua); until then, or for
-- the lease, others get none.
--
-- The slot's field g is the id of the last entry that was shipped|gate|until.
--
-- KEYS  1 slot  2 log
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 gate  5 lease, ms  6 how many at most  7 run
-- Reply entries, each its id and a list of its fields. A copy of the call replies the same.

local now = clock(ARGV[1])
local state = redis.call('HMGET', KEYS[1], 's', 'g')
if not state[1] then return {} end
local cursor, gate, till = string.match(state[2] or '', '^(%d+%-%d+)|([^|]*)|(%d+)$')
if gate and gate ~= ARGV[4] and tonumber(till) > now then return {} end
local entries = redis.call('XRANGE', KEYS[2], cursor and '(' .. cursor or '-', '+', 'COUNT', ARGV[6])
if #entries > 0 then
  redis.call('HSET', KEYS[1], 'g', (cursor or '0-0') .. '|' .. ARGV[4] .. '|' .. int(now + tonumber(ARGV[5])))
end
return entries
