-- Notes what a running gate decides by, and counts the gates that run.
--
-- KEYS  1 gates
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 gate  5 what it decides by, a hash  6 how long it counts as running, ms (0: it
--       ends)  7 run
-- Reply how many gates run, and how many of them decide by something else than this one.
--       Both are strings. A copy of the call renews the gate for as long again.
--
-- The gates are a hash, gate → policy|until. One that was killed is dropped by the next
-- call of any.

local now = clock(ARGV[1])
local gate, policy, life = ARGV[4], ARGV[5], tonumber(ARGV[6])

local running, differing = 0, 0
local entries = redis.call('HGETALL', KEYS[1])
for i = 1, #entries, 2 do
  local other, till = string.match(entries[i + 1], '^(.*)|(%d+)$')
  if entries[i] == gate or not till or tonumber(till) <= now then
    redis.call('HDEL', KEYS[1], entries[i])
  else
    running = running + 1
    if other ~= policy then differing = differing + 1 end
  end
end
if life > 0 then
  running = running + 1
  redis.call('HSET', KEYS[1], gate, policy .. '|' .. int(now + life))
  redis.call('PEXPIRE', KEYS[1], life)
end
return { int(running), int(differing) }
