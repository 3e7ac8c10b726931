-- Sets what an operator may set, creating the slot if need be. A setting or an
-- opening ends the full mark.
--
-- KEYS  1 slot  2 due  3 log  4 pool index  5 pool outbox  6 pool looks
--       7 tombstone of this call
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices
--       4 slot's own text  5 retain, ms  6 keep_unknown 0|1  7 holds wanted
--       8 truth 0 none|1 total|2 remaining
--       9 capacity: "" stays, "clear" as configured, or units
--       10 closed: "" stays, 0 or 1  11 opens at: "" stays, "clear" the pool's, or ms
--       12 verify 0|1  13 run
-- Reply slot_view.lua. A copy of the call changes nothing and sees the slot as it
--       is by then. On a cluster as slot_reply says.

local now, us = clock(ARGV[1])
local retain = tonumber(ARGV[5])
local s = slot_load(slot_keys(ARGV[4], KEYS[6], ARGV[3]), now, ARGV[8], {})
slot_lapse(s, ARGV[6] == '1')

local capacity, closed, opens = ARGV[9], ARGV[10], ARGV[11]
if not finished(now, KEYS[7], KEYS[7]) then
  if capacity ~= '' then s.own = tonumber(capacity) end -- nil where clear
  if closed ~= '' then s.closed = closed == '1' end
  if opens ~= '' then s.opens = tonumber(opens) end
  local verify = ARGV[12] == '1'
  if s.kind ~= TRUTH_REMAINING and (verify or capacity ~= '' and capacity ~= 'clear') then
    s.run, s.verified = RUN, true
  end
  if verify or capacity ~= '' or closed == '0' then full_release(s) end
  s.by_operator = true
  finish(KEYS[7], '', now)
end
slot_save(s, us, retain)
return slot_reply(s, us, slot_view(s, tonumber(ARGV[7])))
