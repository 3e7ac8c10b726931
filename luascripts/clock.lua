-- Time is the store's own, so that gates whose clocks differ agree. Every script is
-- told how many milliseconds its clock runs ahead of TIME: 0 in production, moved by
-- tests. Whether something has expired is decided by this clock; PEXPIRE sees to it
-- that nothing stays for ever.

local function clock(ahead)
  local t = redis.call('TIME')
  local us = t[1] * 1000000 + t[2] + ahead * 1000
  return math.floor(us / 1000), us
end
