-- Frees a hold on an operator's word. Attempts of it that are still unanswered may
-- be settled later: a booking then counts again.
--
-- KEYS  1 slot  2 due  3 log  4 pool index  5 pool outbox  6 pool looks
--       7 tombstone of this call  8 tombstone of the hold  9 its subject in the pool
--       (on a cluster KEYS[1])
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices
--       4 slot's own text  5 retain, ms  6 keep_unknown 0|1  7 hold id
--       8 truth 0 none|1 total|2 remaining  9 run
-- Reply the state the hold was in, or nil where there is no such hold, or none that
--       is open or confirmed. A copy of the call replies the same. On a cluster as
--       slot_reply says.

local now, us = clock(ARGV[1])
local s = slot_load(slot_keys(ARGV[4], KEYS[6], ARGV[3]), now, ARGV[8], { 'h:' .. ARGV[7] })
local before = finished(now, KEYS[7], KEYS[7])
if before then return slot_reply(s, us, before) end

slot_lapse(s, ARGV[6] == '1')
local h = slot_hold(s, ARGV[7])
if h and not hold_is_finished(h) then
  before = h.state
  h.expires = now + COPY_WINDOW
  slot_move(s, h, 'released', 'operator', true)
  full_release(s)
  s.by_operator = true
  if #h.attempts == 0 then slot_finish(s, KEYS[8], 'released', h.subject) end
  pool_note({ max_per_subject = 1, pool_subject = key_here(KEYS[9]) }, s, h)
  finish(KEYS[7], before, now)
end
slot_save(s, us, tonumber(ARGV[5]))
return slot_reply(s, us, before or false)
