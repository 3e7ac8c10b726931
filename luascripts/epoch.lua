-- Tells the epoch of the store's data, and begins a new one where the data may be
-- other than it was (gate/store, "Runs"). The epoch stands beside the data, with the
-- server process that it was noted on: data that is lost takes its epoch along, and
-- data that turns up at another process, or at one that has been a replica since, was
-- copied and may lack what was written last.
--
-- KEYS  1 epoch
-- ARGV  1 run_id of the process  2 its master_replid2: that of the master it was a
--       replica of, zeros if none  3 the epoch this gate knows, "" none yet
--       4 the name of a new epoch  5 how long the store remembers, ms
--       6 clock ahead, ms  7 1 on a cluster, if the run that this gate knows is known to go
--       on, and stood elsewhere until hash slots were moved  8 when the gate last saw another shard
--       change, µs, 0 never
--
-- On a cluster each shard has an epoch, under a key of the lowest hash slot that it
-- serves. When that is another one, what stands under the new key is another shard's or
-- nothing, or what a gate wrote that did not know the epoch's name; and the data are as
-- before.
--
-- Reply the epoch's name, 1 if a gate has seen it begin while it was running, else 0,
--       and when that was first seen, µs (0 never). All are strings.

local process, second, known, life = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5])
local standing = redis.call('GET', KEYS[1])
local noted_on, noted_second, name, changed, since = string.match(standing or '', '^(%w+)|(%w+)|(%w+)|([01])|?(%d*)$')
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2] + ARGV[6] * 1000

-- A process that has no replica for a while forgets whose replica it was.
local same = noted_on == process and (noted_second == second or not string.find(second, '[^0]'))
-- A gate that was started meanwhile could not know of any change.
local unnoticed = known ~= '' and known ~= name and changed == '0' and ARGV[7] ~= '1'
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
