-- Decide: may this request be forwarded? See gate/store, "What decide does".
--
-- On a cluster it is the slot's part alone: the key, the limits of subject and client and
-- what the subject has in the pool were asked before, each on its own shard (claim.lua,
-- charge.lua, reserve.lua).
--
-- KEYS  1 slot  2 due  3 log  4 pool index  5 pool outbox  6 pool looks
--       7 tombstone of the id  8 tombstone of this call of it
--       9 slot limit  10 subject in the pool  11 key record  12 awaited answer
--       13 subject limit  14 client limit  15 tombstone of the target
--       A key that plays no part is a placeholder; on a cluster, KEYS[1].
-- ARGV  1 clock ahead, ms  2 resent 0|1  3 channel of notices  4 id  5 lease, ms
--       6 gated 0|1 (has a slot)  7 slot's own text  8 units  9 capacity, -1 learned
--       10 hold_ttl, ms  11 retain, ms  12 one_per_subject 0|1  13 max_per_subject
--       14 max_inflight  15 keep_unknown 0|1  16 opens at, ms  17 line 0|1
--       18 subject hash  19 subject text
--       20 keyed 0|1  21 key ttl, ms  22 scope hash  23 bare replay 0|1
--       24 fingerprint  25 retry unknown 0|1  26 wait, ms  27 awaits an answer 0|1
--       28 charged 0|1  then interval in µs (0 none) and burst of the limits
--       29 30 subject  31 32 client  33 34 slot
--       35 action 0 book|1 cancel|2 confirm  36 target hold  37 unreferenced 0|1
--       38 truth 0 none|1 total|2 remaining  39 hot, ms  40 refresh, ms  41 blind 0|1
--       42 key's short hash, "" none  43 a sold_out is repeated by its gate for so long, ms
--       on a cluster: 44 the hold that the key's claim goes under, "" none
--       45 subject full in the pool 0|1  46 no further than step 3, 0|1
--       47 run
-- Reply verdict, hold, adopted 0|1, probe 0|1, release counter, owner,
--       may replay 0|1, answer, retry after in ms, holds lapsed, units left (-1 not
--       known), holders (43: whom a sold_out may not be repeated to, see slot_holders; ""
--       it may not be repeated), then for each limit looked at: name, remaining, reset in ms. All are strings.
--       On a cluster (slot_reply) the verdict may also be looked (46: this id has never
--       been here), and of the hold under 44 booked (H21) or hold_gone (H22), and nothing
--       has been taken then; a grant that was recorded before is recorded.

local now, us = clock(ARGV[1])
local resent, gated, keyed = ARGV[2] == '1', ARGV[6] == '1', ARGV[20] == '1'
local d = {
  id = ARGV[4], lease = tonumber(ARGV[5]),
  units = tonumber(ARGV[8]), capacity = tonumber(ARGV[9]),
  hold_ttl = tonumber(ARGV[10]), retain = tonumber(ARGV[11]),
  one_per_subject = ARGV[12] == '1', max_per_subject = tonumber(ARGV[13]),
  max_inflight = tonumber(ARGV[14]), keep_unknown = ARGV[15] == '1',
  opens = tonumber(ARGV[16]), line = ARGV[17] == '1', subject = ARGV[18], text = ARGV[19],
  pool_subject = key_here(KEYS[10]), target_grave = KEYS[15],
  key_ttl = tonumber(ARGV[21]), scope = ARGV[22], bare = ARGV[23] == '1',
  fingerprint = ARGV[24], retry_unknown = ARGV[25] == '1', wait = tonumber(ARGV[26]),
  books = ARGV[35] == '0', confirms = ARGV[35] == '2', target = ARGV[36], unreferenced = ARGV[37] == '1',
  truth = ARGV[38], hot = tonumber(ARGV[39]), refresh = tonumber(ARGV[40]), blind = ARGV[41] == '1',
  key = ARGV[42], repeats = tonumber(ARGV[43]), under = ARGV[44],
}
local r = { hold = '', owner = '', answer = '', holders = '', retry = 0, lapsed = 0, limits = {} }
local rec, s

local function bool(b) return b and '1' or '0' end

local function units_left()
  local looked = s and r.verdict ~= 'gone'
  local capacity = looked and slot_capacity(s, d.capacity) or LEARNED
  if capacity == LEARNED then return -1 end
  return math.max(0, capacity - s.conf - s.held)
end

local function answer()
  local admitted = r.verdict == 'admitted'
  local reply = { r.recorded and 'recorded' or r.verdict, r.hold, bool(r.adopted), bool(admitted and r.probe), int(r.seen or s and s.rel or 0),
    r.owner, bool(r.may_replay), r.answer, int(r.retry), int(r.lapsed), int(units_left()), r.holders }
  for _, state in ipairs(r.limits) do
    reply[#reply + 1] = state.limit.name
    reply[#reply + 1] = int(state.remaining)
    reply[#reply + 1] = int(state.reset)
  end
  return s and slot_reply(s, us, reply) or reply
end

-- Steps 1 and 2: an answer is there, or the id has been here.
local function before()
  if keyed and ARGV[27] == '1' then
    local scope, left = key_left_answer(KEYS[12], now)
    if scope then
      r.verdict, r.may_replay = 'answered', key_may_replay(scope, d.scope, d.bare)
      r.answer = r.may_replay and left or ''
      return true
    end
  end
  if keyed then rec = key_load(KEYS[11], now) end
  if gated then
    local extra = { 'h:' .. d.id, 't:' .. d.id }
    if d.subject ~= '' then extra[#extra + 1] = 'u:' .. d.subject end
    if rec and rec.hold ~= '' then extra[#extra + 1] = 'h:' .. rec.hold end
    if d.under ~= '' then extra[#extra + 1] = 'h:' .. d.under end
    if d.target ~= '' then extra[#extra + 1] = 'h:' .. d.target end
    s = slot_load(slot_keys(ARGV[7]), now, d.truth, extra)
    if slot_finished(s, KEYS[7], KEYS[8]) then
      s = slot_untouched(s.k)
      r.verdict = 'gone'
      return true
    end
    if not decide_known_id(d, r, s) then return false end
    r.recorded = not s.k.index and r.verdict == 'admitted'
    return true
  end
  if keyed and finished(now, KEYS[7], KEYS[8]) then
    r.verdict = 'gone'
    return true
  end
  if rec and rec.owner == d.id then
    r.verdict = rec.state == 'running' and 'admitted' or 'gone'
    return true
  end
  return false
end

-- Step 5, and the look at the slot's limit for step 10. A limit that passes is
-- charged here, the slot's only by an admit.
local function limited(name, key, at, verdict)
  local interval = tonumber(ARGV[at])
  if interval == 0 then return false end
  local state = limit_look({ name = name, key = key, interval = interval, burst = tonumber(ARGV[at + 1]) },
    us, d.id, resent)
  r.limits[#r.limits + 1] = state
  if not state.passes then
    r.verdict, r.retry = verdict, state.retry
    return true
  end
  if name == 'slot' then
    r.slot_limit = state
  else
    limit_charge(state, us, d.id)
  end
  return false
end

local function subject_full()
  if d.max_per_subject == 0 or d.subject == '' then return false end
  local full = ARGV[45] == '1'
  if d.pool_subject then full = pool_units(d.pool_subject, now, d.id) + d.units > d.max_per_subject end
  if full then r.verdict = 'subject_full' end
  return full
end

-- The end of step 4. What must be told to the key's record is told where it is at hand,
-- else by the gate.
local function under()
  local hold = d.under ~= '' and decide_under(d, r, s)
  if hold == 'booked' and keyed then
    key_complete(rec, d.key_ttl, '')
    replay(d, r, rec)
  elseif hold == 'booked' then
    r.verdict = 'booked'
  elseif hold == 'gone' and not keyed then
    r.verdict = 'hold_gone'
  elseif not r.verdict and ARGV[46] == '1' then
    r.verdict = 'looked'
  end
  return r.verdict ~= nil
end

-- Steps 3 to 11; true when there is a verdict.
local function look()
  if gated and d.books then r.lapsed = slot_lapse(s, d.keep_unknown) end
  if keyed and decide_key(d, r, rec) then return true end
  if gated and under() then return true end
  if ARGV[28] ~= '1' then
    if limited('subject', KEYS[13], 29, 'limited_subject') then return true end
    if limited('client', KEYS[14], 31, 'limited_client') then return true end
  end
  if not gated then return false end
  if not d.books then return decide_cancel(d, r, s) end
  return decide_subject(d, r, s) or subject_full() or decide_units(d, r, s)
    or limited('slot', KEYS[9], 33, 'limited_slot') or decide_room(d, r, s)
end

if before() then return answer() end
if not look() then
  r.verdict = 'admitted'
  if r.slot_limit then limit_charge(r.slot_limit, us, d.id) end
  if gated and d.books then
    decide_admit(d, r, s)
  elseif gated then
    cancel_admit(d, r, s)
  end
end
if r.verdict == 'admitted' then
  if keyed then key_claim(rec, d.id, d.books and r.hold or '', d.fingerprint, d.scope, d.lease, d.key_ttl) end
elseif resent and gated then
  slot_finish(s, KEYS[8], '')
elseif resent and keyed then
  finish(KEYS[8], '', now)
end
if gated and d.truth ~= NO_TRUTH then decide_look(d, s) end
if gated then slot_save(s, us, d.retain) end
return answer()
