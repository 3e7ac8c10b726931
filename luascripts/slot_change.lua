-- Sets what an operator may set, creating the slot if need be. A setting or an
-- opening ends the full mark.
--
-- KEYS  1 slot  2 due  3 run  4 log  5 pool index  6 tombstone of this call
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices
--       4 slot's own text  5 retain, ms  6 keep_unknown 0|1  7 holds wanted
--       8 capacity: "" stays, "clear" as configured, or units
--       9 closed: "" stays, 0 or 1  10 opens at: "" stays, "clear" the pool's, or ms
--       11 verify 0|1  12 run
-- Reply slot_view.lua. A copy of the call changes nothing and sees the slot as it
--       is by then.

local now, us = clock(ARGV[1])
local retain = tonumber(ARGV[5])
local s = slot_load({ hash = KEYS[1], due = KEYS[2], run = KEYS[3], log = KEYS[4], index = KEYS[5],
  channel = ARGV[3], name = ARGV[4] }, now, {})
slot_lapse(s, ARGV[6] == '1')

local capacity, closed, opens = ARGV[8], ARGV[9], ARGV[10]
if not finished(now, KEYS[6], KEYS[6]) then
  if capacity ~= '' then s.own = capacity ~= 'clear' and capacity or '' end
  if closed ~= '' then s.closed = closed end
  if opens ~= '' then s.opens = opens ~= 'clear' and opens or '' end
  local verify = ARGV[11] == '1'
  if verify or capacity ~= '' and capacity ~= 'clear' then s.run, s.verified = RUN, true end
  if verify or capacity ~= '' or closed == '0' then full_release(s) end
  s.by_operator = true
  finish(KEYS[6], '', now)
end
slot_save(s, us, retain)
return slot_view(s, tonumber(ARGV[7]))
