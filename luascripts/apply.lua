-- Ends a look at truth with what the source said (gate/store, "Truth").
--
-- KEYS  1 slot  2 due  3 log  4 pool index  5 pool outbox  6 pool looks
--       7 lease of the slot's looks  8 tombstone of this look  9 epoch; on a cluster
--       KEYS[1]: the store has asked the shard for its run
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices
--       4 slot's own text  5 retain, ms  6 keep_unknown 0|1  7 truth 1 total|2 remaining
--       8 configured capacity, -1 learned  9 look id; then as the look replied: 10 known
--       0|1  11 born, µs  12 at, µs  13 open units  14 admitted  15 refunded  16 marked
--       17 the source said: value|missing|none  18 value  19 total, -1 not told
--       20 fence, 0 none  21 hot, ms  22 refresh, ms  23 run
-- Reply applied 0|1, known 0|1, before, after, again 0|1. All are strings. A copy of
--       the call is refused by its own time. On a cluster as slot_reply says.

local now, us = clock(ARGV[1])
local retain, id = tonumber(ARGV[5]), ARGV[9]
local looked = { known = ARGV[10] == '1', born = tonumber(ARGV[11]), at = tonumber(ARGV[12]),
  open = tonumber(ARGV[13]), adm = tonumber(ARGV[14]), ref = tonumber(ARGV[15]), marked = ARGV[16] == '1' }
local said, value, total, fence = ARGV[17], tonumber(ARGV[18]), tonumber(ARGV[19]), tonumber(ARGV[20])
local hot, refresh = tonumber(ARGV[21]), tonumber(ARGV[22])
local s = slot_load(slot_keys(ARGV[4], KEYS[6], ARGV[3]), now, ARGV[7], {})
local v = s.v

local function refused()
  if s.known ~= looked.known or s.known and v.born ~= looked.born then return true end
  -- The look was under another run, and knows nothing of what that left open (H17).
  if not run_stands(KEYS[9]) or RUN_CHANGED == '1' and looked.at < tonumber(RUN_SINCE) then return true end
  return looked.at <= v.at or fence ~= 0 and fence < v.fence
end

-- Units of booked holds that cancels within their lease mean: their bookings may be
-- gone from truth already, and their settlements are still to come (H13).
local function cancelled()
  local units, counted = 0, {}
  for _, c in ipairs(s.cancels) do
    local h = c.kind == CANCEL and c.lease > now and not counted[c.hold] and slot_hold(s, c.hold)
    if h and hold_is_booked(h) then
      counted[c.hold] = true
      units = units + h.units
    end
  end
  return units
end

-- Units available, and whether that is known.
local function available()
  if truth_counts(s) then return v.cap - s.conf - s.held, true end
  local capacity = slot_capacity(s, tonumber(ARGV[8]))
  return capacity - s.conf - s.held, capacity ~= LEARNED
end

-- Returns whether the look fell short of what there is.
local function take_value()
  v.failed = ''
  local again = false
  if s.kind == TRUTH_TOTAL then
    v.total = value
  else
    local admitted, refunded = s.adm - looked.adm, s.ref - looked.ref
    v.cap = value - (looked.open + admitted - refunded) - cancelled() + s.conf + s.held
    v.total, s.run, s.verified = total, RUN, true
    again = looked.open > 0 or admitted > 0
  end
  local left = available()
  if looked.marked and s.full > 0 and left >= s.full then full_release(s) end
  return again
end

-- When the slot is due again.
local function plan(again)
  local at
  if again or v.moved > looked.at then
    at = now + hot
  elseif us - v.moved <= math.max(MOVED_LATELY, 10 * refresh) * 1000 then
    at = now + refresh
  end
  if v.asked >= math.floor(looked.at / 1000) then at = now end -- also in the same millisecond
  local first = redis.call('ZRANGEBYSCORE', s.k.due, '(' .. int(now), BELOW_KEPT, 'WITHSCORES', 'LIMIT', 0, 1)
  if first[2] then at = math.min(at or math.huge, tonumber(first[2])) end
  v.due, s.plan = at or 0, true
end

local function apply()
  v.at, v.checked, v.fence = looked.at, math.floor(looked.at / 1000), math.max(v.fence, fence)
  s.announced, s.retold = true, true
  truth_pace(s, hot, refresh)
  if said == 'missing' then
    v.cap, v.total, v.failed, v.checked, v.due, s.plan = nil, LEARNED, '', 0, 0, true
    return false
  end
  local again = false
  if said == 'value' then
    again = take_value()
  else
    v.failed = RUN
  end
  plan(again)
  return again
end

local function reply(applied, known, before, after, again)
  local holder = string.match(redis.call('GET', KEYS[7]) or '', '^(.*)|%d+$')
  if holder == id then redis.call('DEL', KEYS[7]) end
  return slot_reply(s, us, { applied and '1' or '0', known and '1' or '0', int(before), int(after), again and '1' or '0' })
end

if refused() then return reply(false, false, 0, 0, false) end
finish(KEYS[8], '', now)
if said == 'missing' and not s.known then
  slot_plan(s, 0, retain)
  return reply(true, false, 0, 0, false)
end
local before, known = available()
local again = apply()
if said == 'missing' then known = false end -- there is nothing to compare
local after, counted = available()
slot_save(s, us, retain)
return reply(true, known, known and before or 0, counted and after or 0, again)
