-- Says that entries which ship.lua gave are in the pool's outbox, on a cluster, and lets
-- the ledger shrink to what a slot keeps.
--
-- KEYS  1 slot  2 log
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 gate  5 the last entry's id  6 run
-- Reply 1, or 0 where another gate took over, or the pool may have dropped what it was
--       told so late (note.lua): they are shipped again. A string. Running it twice, or
--       late, does not go back.

local now = clock(ARGV[1])
local cursor, gate, till = string.match(redis.call('HGET', KEYS[1], 'g') or '', '^(%d+%-%d+)|([^|]*)|(%d+)$')
if gate ~= ARGV[4] or tonumber(till) > 0 and now > till + COPY_WINDOW / 2 then return '0' end
local ms, seq = string.match(cursor, '(%d+)%-(%d+)')
local new_ms, new_seq = string.match(ARGV[5], '(%d+)%-(%d+)')
ms, seq, new_ms, new_seq = tonumber(ms), tonumber(seq), tonumber(new_ms), tonumber(new_seq)
if new_ms < ms or new_ms == ms and new_seq < seq then return '0' end
redis.call('HSET', KEYS[1], 'g', ARGV[5] .. '|' .. ARGV[4] .. '|0')
redis.call('XTRIM', KEYS[2], 'MAXLEN', '~', LEDGER_LENGTH)
return '1'
