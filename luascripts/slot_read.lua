-- Reads one slot after applying its due lapses.
--
-- KEYS  1 slot  2 due  3 run  4 log  5 pool index
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices
--       4 slot's own text  5 retain, ms  6 keep_unknown 0|1  7 holds wanted  8 run
-- Reply slot_view.lua, or nil where the slot was never seen. Running it twice
--       lapses once.

local now, us = clock(ARGV[1])
local s = slot_load({ hash = KEYS[1], due = KEYS[2], run = KEYS[3], log = KEYS[4], index = KEYS[5],
  channel = ARGV[3], name = ARGV[4] }, now, {})
if not s.known then return false end
slot_lapse(s, ARGV[6] == '1')
slot_save(s, us, tonumber(ARGV[5]))
return slot_view(s, tonumber(ARGV[7]))
