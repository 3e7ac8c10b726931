-- Begins a look at truth: where the counters of a slot stand before its source is read
-- (gate/store, "Truth").
--
-- KEYS  1 slot  2 due  3 log  4 pool index  5 pool outbox  6 pool looks
--       7 lease of the slot's looks  8 tombstone of this look  9 epoch; on a cluster
--       KEYS[1]: the store has asked the shard for its run
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices
--       4 slot's own text  5 retain, ms  6 keep_unknown 0|1  7 truth 1 total|2 remaining
--       8 hold_ttl, ms  9 look id  10 lag, ms  11 lease, ms, 0 none  12 force 0|1
--       13 not needed where one was made for so long, ms, 0 needed  14 run
-- Reply busy in ms, known 0|1, born in µs, at in µs, open units, admitted, refunded,
--       marked 0|1. All are strings. A copy of the call reads anew, as long as the look
--       has not been applied, and prolongs nothing. On a cluster as slot_reply says.

local now, us = clock(ARGV[1])
local id, lag, lease, force = ARGV[9], tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12] == '1'
local fresh = tonumber(ARGV[13])
local s = slot_load(slot_keys(ARGV[4], KEYS[6], ARGV[3]), now, ARGV[7], {})

-- Units of bookings that truth may not show yet, or not show for good. Where there are
-- more holds than one look adds up, all of them.
local function booked_lately()
  local listed = redis.call('ZRANGEBYSCORE', s.k.due, '(' .. int(CONFIRMED_ZONE + now - lag), '(' .. int(ATTEMPT_ZONE),
    'WITHSCORES', 'LIMIT', 0, RECENT_SCAN)
  if #listed == 2 * RECENT_SCAN then return s.conf + s.v.pending end
  local ids, names = {}, {}
  for i = 1, #listed, 2 do
    local hold = string.gsub(listed[i], '^%+', '')
    ids[#ids + 1], names[#names + 1] = hold, 'h:' .. hold
  end
  slot_prefetch(s, names)
  local units = 0
  for i, hold in ipairs(ids) do
    local h = slot_hold(s, hold)
    -- One that stands there for its other attempts may have been booked long ago.
    local booked = h and #h.attempts > 0 and slot_note(s, hold).booked
    local again = tonumber(listed[2 * i]) > CONFIRMED_ZONE + now
    if h and hold_is_booked(h) and (again or not booked or booked > now - lag) then units = units + h.units end
  end
  return units
end

-- How long this look must keep off, for another's sake or after a change of run (H17).
local function kept_off()
  if finished(now, KEYS[8], KEYS[8]) then return 1 end
  if not run_stands(KEYS[9]) then return RUN_NOTICED end
  if force then return 0 end
  if fresh > 0 and truth_fresh(s, fresh) then return 1 end
  local other, till = string.match(redis.call('GET', KEYS[7]) or '', '^(.*)|(%d+)$')
  local wait = truth_wait(s, tonumber(ARGV[8]))
  if lease > 0 and other and other ~= id then wait = math.max(wait, tonumber(till) - now) end
  return wait
end

-- A lease that this look has already is left as it is.
local function take_lease()
  if lease == 0 then return end
  local other, till = string.match(redis.call('GET', KEYS[7]) or '', '^(.*)|(%d+)$')
  if other == id and tonumber(till) > now then return end
  redis.call('SET', KEYS[7], id .. '|' .. int(now + lease), 'PX', lease)
  s.v.looking, s.retold = us, true
end

local busy = kept_off()
if s.known then slot_lapse(s, ARGV[6] == '1') end
if busy > 0 then
  slot_save(s, us, tonumber(ARGV[5]))
  return slot_reply(s, us, { int(busy), '0', '0', '0', '0', '0', '0', '0' })
end
take_lease()
if not s.known then return slot_reply(s, us, { '0', '0', '0', int(us), '0', '0', '0', '0' }) end
if s.v.born == 0 then s.v.born, s.retold = us, true end
local open = s.held - s.v.pending + booked_lately()
slot_save(s, us, tonumber(ARGV[5]))
return slot_reply(s, us, { '0', '1', int(s.v.born), int(us), int(open), int(s.adm), int(s.ref), s.full > 0 and '1' or '0' })
