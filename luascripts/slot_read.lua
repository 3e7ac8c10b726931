-- Reads one slot after applying its due lapses.
--
-- KEYS  1 slot  2 due  3 log  4 pool index  5 pool outbox  6 pool looks
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices
--       4 slot's own text  5 retain, ms  6 keep_unknown 0|1  7 holds wanted
--       8 truth 0 none|1 total|2 remaining  9 run
-- Reply slot_view.lua, or nil where the slot was never seen. Running it twice
--       lapses once. On a cluster as slot_reply says.

local now, us = clock(ARGV[1])
local s = slot_load(slot_keys(ARGV[4], KEYS[6], ARGV[3]), now, ARGV[8], {})
if not s.known then return slot_reply(s, us, false) end
slot_lapse(s, ARGV[6] == '1')
slot_save(s, us, tonumber(ARGV[5]))
return slot_reply(s, us, slot_view(s, tonumber(ARGV[7])))
