#!lua
local process, second, known, life = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5])
local standing = redis.call('GET', KEYS[1])
local noted_on, noted_second, name, changed, since = string.match(standing or '', '^(%w+)|(%w+)|(%w+)|([01])|?(%d*)$')
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2] + ARGV[6] * 1000
local same = noted_on == process and (noted_second == second or not string.find(second, '[^0]'))
local unnoticed = known ~= '' and known ~= name and changed == '0'
if ARGV[7] == '1' and noted_on ~= process then
  name, changed, since = known ~= '' and known or ARGV[4], '0', ''
elseif not same or unnoticed then
  name = ARGV[4]
  changed, since = (known ~= '' or changed == '1') and '1' or '0', ''
end
if not since or since == '' then since = changed == '1' and string.format('%d', us) or '0' end
local elsewhere = tonumber(ARGV[8])
if elsewhere > 0 then changed, since = '1', string.format('%d', math.max(since, elsewhere)) end
local epoch = table.concat({ process, second, name, changed, since }, '|')
if epoch ~= standing or redis.call('PTTL', KEYS[1]) < life / 2 then
  redis.call('SET', KEYS[1], epoch, 'PX', life)
end
return { name, changed, since }
