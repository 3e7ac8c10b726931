-- Sets what an operator may set, creating the slot if need be. A setting or an
-- opening ends the full mark.
--
-- KEYS  1 slot  2 due  3 run  4 log  5 pool index  6 tombstone of this call
-- ARGV  1 clock ahead, ms  2 channel of notices  3 slot's own text  4 retain, ms
--       5 keep_unknown 0|1  6 holds wanted
--       7 capacity: "" stays, "clear" as configured, or units
--       8 closed: "" stays, 0 or 1  9 opens at: "" stays, "clear" the pool's, or ms
-- Reply slot_view.lua. A copy of the call changes nothing and sees the slot as it
--       is by then.

local now, us = clock(ARGV[1])
local retain = tonumber(ARGV[4])
local s = slot_load({ hash = KEYS[1], due = KEYS[2], run = KEYS[3], log = KEYS[4], index = KEYS[5],
  channel = ARGV[2], name = ARGV[3] }, now, {})
slot_lapse(s, ARGV[5] == '1')

local capacity, closed, opens = ARGV[7], ARGV[8], ARGV[9]
if not finished(now, KEYS[6], KEYS[6]) then
  if capacity ~= '' then s.own = capacity ~= 'clear' and capacity or '' end
  if closed ~= '' then s.closed = tonumber(closed) end
  if opens ~= '' then s.opens = opens ~= 'clear' and opens or '' end
  if capacity ~= '' or closed == '0' then full_release(s) end
  s.asked = true
  s.notice = true
  finish(KEYS[6], '', now)
end
slot_save(s, us, retain)
return slot_view(s, tonumber(ARGV[6]))
