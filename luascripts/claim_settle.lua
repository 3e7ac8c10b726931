-- The key's part of settle, after the slot's (H20), on a cluster.
--
-- KEYS  1 key record  2 tombstone of the attempt  3 the answer left for twins
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices  4 id  5 outcome
--       6 hold  7 books 0|1  8 keep 0|1  9 answer  10 key ttl, ms  11 scope hash
--       12 fingerprint  13 the slot applied it 0|1  14 the hold's state  15 the store had
--       never seen the hold 0|1  16 run
-- Reply 1. A string. Running it twice settles once: the key is no longer running then.

local d = {
  id = ARGV[4], outcome = ARGV[5], hold = ARGV[6], books = ARGV[7] == '1', keep = ARGV[8] == '1', answer = ARGV[9],
  key_ttl = tonumber(ARGV[10]), scope = ARGV[11], fingerprint = ARGV[12], attempt_grave = KEYS[2], channel = ARGV[3],
}
local r = { applied = ARGV[13] == '1', state = ARGV[14], unseen = ARGV[15] == '1' }
settle_key(d, r, key_load(KEYS[1], (clock(ARGV[1]))), KEYS[3], true, true)
return '1'
