-- Notes a slot in its pool's index, on a cluster: before a gate first touches the slot, and
-- now and then, so that one which exists is listed.
--
-- KEYS  1 pool index
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 slot's own text  5 retain, ms  6 run
-- Reply 1. A string. Running it twice notes the slot as of the second time.

local _, us = clock(ARGV[1])
index_note(KEYS[1], ARGV[4], us, tonumber(ARGV[5]))
return '1'
