-- Counts a hold among what its subject has in the pool before it is taken, on a cluster.
--
-- KEYS  1 subject in the pool  2 tombstone of this call
-- ARGV  1 clock ahead, ms  2 resent 0|1  3 channel of notices (not needed)
--       4 hold  5 units  6 max_per_subject, 0 not checked  7 for how long, ms
--       8 how long the subject is remembered, ms  9 this call  10 run
-- Reply full 0|1, what was written ("" nothing, or what stood there lives longer now). All
--       are strings. A second copy finds what the first wrote, a late first one a tombstone.

local now = clock(ARGV[1])
local hold, units, most, ttl, mark = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), '/' .. ARGV[9]
if finished(now, KEYS[2], KEYS[2]) then return { '0', '' } end
if ARGV[2] == '1' then finish(KEYS[2], '', now) end
local written = redis.call('HGET', KEYS[1], hold) or ''
local standing, expires, rest = string.match(written, '^(%d+):(%d+)(.*)$')
if rest == mark then return { '0', written } end
if most > 0 and pool_units(KEYS[1], now, hold) + units > most then return { '1', '' } end
local stands = standing and tonumber(expires) > now
if stands and (standing == '0' or tonumber(expires) >= now + ttl) then return { '0', '' } end
local value = units .. ':' .. int(now + ttl) .. (stands and rest or mark)
redis.call('HSET', KEYS[1], hold, value)
redis.call('PEXPIRE', KEYS[1], ARGV[8])
return { '0', stands and '' or value }
