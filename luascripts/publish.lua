-- Puts entries of a slot's ledger into the pool's outbox, on a cluster.
--
-- KEYS  1 pool outbox
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 retain, ms  5 slot's own text, then for each entry: its id in the ledger, how many
--       fields and values it has, and these; the last is the run
-- Reply 1. A string. Running it twice puts them there twice: their ids in the ledger tell.

local at = 6
while at < #ARGV do
  local fields = { 'l', ARGV[at] }
  local length = tonumber(ARGV[at + 1])
  for i = at + 2, at + 1 + length do fields[#fields + 1] = ARGV[i] end
  outbox_add(KEYS[1], ARGV[5], fields)
  at = at + 2 + length
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return '1'
