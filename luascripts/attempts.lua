-- Attempts that are awaited stand in what is due of their slot (slot.lua). Those that ended or
-- that nobody settled count for nothing, and go with each ATTEMPT_TRIMth change of the slot.

local function trim_attempts(due, now)
  redis.call('ZREMRANGEBYSCORE', due, '(' .. int(ATTEMPT_ZONE), int(ATTEMPT_ZONE + now))
end
