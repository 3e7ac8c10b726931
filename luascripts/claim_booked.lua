-- Completes a key whose hold was found booked: its answer is lost (H21), on a cluster.
--
-- KEYS  1 key record
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices  4 id
--       5 the call that claimed  6 key ttl, ms  7 scope hash  8 bare replay 0|1  9 run
-- Reply verdict: replay|key_done, or "" where the claim is no longer the caller's; may
--       replay 0|1, answer. All are strings. Running it twice completes once.

local rec = key_load(KEYS[1], (clock(ARGV[1])))
local r = { answer = '' }
if key_is_claimed(rec, ARGV[4], ARGV[5]) then
  key_complete(rec, tonumber(ARGV[6]), '')
  key_tell(rec, ARGV[3])
  rec.state = 'done'
end
if rec.state ~= 'done' then return { '', '0', '' } end
replay({ scope = ARGV[7], bare = ARGV[8] == '1' }, r, rec)
return { r.verdict, r.may_replay and '1' or '0', r.answer }
