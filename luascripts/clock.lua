-- Time is the store's own, so that gates whose clocks differ agree. The first
-- ARGV of every script is how many milliseconds its clock runs ahead of TIME: 0
-- in production, moved by tests. Whether something has expired is decided by
-- this clock; PEXPIRE sees to it that nothing stays for ever.

local function clock(ahead)
  local t = redis.call('TIME')
  local us = t[1] * 1000000 + t[2] + ahead * 1000
  return math.floor(us / 1000), us
end

-- Lua prints large numbers as 1.7e+15 and replies lose fractions, so whole numbers
-- leave a script as text.
local function int(n)
  return string.format('%d', n)
end

-- What was written by a newer version of the gate may mean something else.
local SCHEMA = 1

local function check_schema(v, key)
  if v and not (tonumber(v) and tonumber(v) <= SCHEMA) then
    error({ err = 'SCHEMA ' .. key .. ' was written in version ' .. v ..
      ' of the stored form, this gate reads up to ' .. SCHEMA .. '; update this gate' })
  end
end
