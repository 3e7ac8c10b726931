-- Plans looks that slots asked for (slot_reply in slot_save.lua), on a cluster.
--
-- KEYS  1 pool looks
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 retain, ms, then for each slot: its own text, when its look is due in ms (0 not);
--       the last is the run
-- Reply 1. A string. Running it twice plans the same.

for i = 5, #ARGV - 2, 2 do looks_plan(KEYS[1], ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[4])) end
return '1'
