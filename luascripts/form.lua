-- What is stored is text, in a form that has a version.

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
