-- Frees a hold on an operator's word. Attempts of it that are still unanswered may
-- be settled later: a booking then counts again.
--
-- KEYS  1 slot  2 due  3 run  4 log  5 pool index  6 tombstone of this call
--       7 tombstone of the hold  8 its subject in the pool
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices
--       4 slot's own text  5 retain, ms  6 keep_unknown 0|1  7 hold id
--       8 run
-- Reply the state the hold was in, or nil where there is no such hold, or none that
--       is open or confirmed. A copy of the call replies the same.

local now, us = clock(ARGV[1])
local s = slot_load({ hash = KEYS[1], due = KEYS[2], run = KEYS[3], log = KEYS[4], index = KEYS[5],
  channel = ARGV[3], name = ARGV[4] }, now, { 'h:' .. ARGV[7] })
local before = finished(now, KEYS[6], KEYS[6])
if before then return before end

slot_lapse(s, ARGV[6] == '1')
local h = slot_hold(s, ARGV[7])
if h and not hold_is_finished(h) then
  before = h.state
  h.expires = now + COPY_WINDOW
  slot_move(s, h, 'released', 'operator')
  full_release(s)
  s.by_operator = true
  if #h.attempts == 0 then finish(KEYS[7], 'released', now) end
  pool_note({ max_per_subject = 1, pool_subject = KEYS[8] }, h, now)
  finish(KEYS[6], before, now)
end
slot_save(s, us, tonumber(ARGV[5]))
return before or false
