-- Puts entries of a slot's ledger into the pool's outbox, where there is one, on a cluster.
--
-- KEYS  1 pool outbox
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 retain, ms  5 slot's own text, then for each entry: its id in the ledger and its
--       text (slot.lua); the last is the run
-- Reply 1. A string. Running it twice puts them there twice: their ids in the ledger tell.

for i = 6, #ARGV - 2, 2 do outbox_add(KEYS[1], ARGV[5], ARGV[i + 1], ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return '1'
