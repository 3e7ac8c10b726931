-- Decide: may this request be forwarded? See gate/store, "What decide does".
--
-- On a cluster it is the slot's part alone: the key, the limits of subject and client and
-- what the subject has in the pool were asked before, each on its own shard (claim.lua,
-- charge.lua, reserve.lua).
--
-- KEYS  1 slot  2 due  3 log  4 pool index  5 pool outbox
--       6 tombstone of the id  7 tombstone of this call of it  8 key record  9 pool looks
--       10 subject in the pool  11 slot limit  12 subject limit  13 client limit
--       14 awaited answer  15 tombstone of the target
--       A key that plays no part is a placeholder, on a cluster KEYS[1], or not given
--       where none follows that plays one.
-- ARGV  1 as MessagePack, one value after the other; times in ms, what is asked with "?"
--         true or false, numbers in "" as text:
--         usual? (decide_usual.lua may look at it)  resent?
--         nil, or a table of interval in µs (0 none, or charged before) and burst of the
--         limits of subject, client and slot
--         clock ahead  id  h:id  t:id  u:subject hash  units  capacity, -1 learned  opens at  keyed?
--         keep_unknown?  a sold_out is repeated by its gate for so long
--         then what an admit or a replay asks for
--         fingerprint|scope hash  bare replay?  subject hash  "units"
--         key's short hash, "" none  "key ttl, but no less than lease"  subject text
--         max_inflight  retain  lease  hold_ttl
--         then what is not usual
--         gated? (has a slot)  slot's own text  one_per_subject?  max_per_subject  line?
--         key ttl  retry unknown?  wait  awaits an answer?  action 0 book|1 cancel|2 confirm
--         target hold  unreferenced?  truth "0" none|"1" total|"2" remaining  hot  refresh
--         blind?  on a cluster: the hold that the key's claim goes under, "" none
--         subject full in the pool?  no further than step 3?  channel of notices
--       2 run
-- Reply one text of these with "|" between: verdict, hold, adopted 0|1, probe 0|1, release
--       counter, owner, may replay 0|1, retry after in ms, holds lapsed, units left (-1 not
--       known), holders (whom a sold_out may not be repeated to, see slot_holders; "" it may
--       not be repeated), for each limit looked at name:remaining:reset in ms with "," between,
--       answer.
--       On a cluster (slot_reply) the verdict may also be looked (no further: this id has
--       never been here), and of the hold that the claim goes under booked (H21) or hold_gone
--       (H22), and nothing has been taken then; a grant that was recorded before is recorded.

local _, resent, limits, ahead, id, _, _, _, units, capacity, opens, keyed, keep_unknown, repeats,
  proof, bare, subject, _, key, _, text, max_inflight, retain, lease, hold_ttl,
  gated, name, one_per_subject, max_per_subject, line, key_ttl, retry_unknown, wait, awaits, action, target, unreferenced, truth,
  hot, refresh, blind, under_hold, subject_is_full, only_looks, channel = cmsgpack.unpack(ARGV[1])
local now, us = clock(ahead)
local fingerprint, scope = string.match(proof, '^([^|]*)|(.*)$')
local d = {
  id = id, lease = lease, units = units, capacity = capacity, hold_ttl = hold_ttl, retain = retain,
  one_per_subject = one_per_subject, max_per_subject = max_per_subject, max_inflight = max_inflight,
  keep_unknown = keep_unknown, opens = opens, line = line, subject = subject, text = text,
  pool_subject = key_here(KEYS[10]), target_grave = KEYS[15],
  key_ttl = key_ttl, scope = scope, bare = bare, fingerprint = fingerprint, retry_unknown = retry_unknown, wait = wait,
  books = action == 0, confirms = action == 2, target = target, unreferenced = unreferenced,
  truth = truth, hot = hot, refresh = refresh, blind = blind, key = key, repeats = repeats, under = under_hold,
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
  local limits = {}
  for i, state in ipairs(r.limits) do limits[i] = limit_text(state) end
  local reply = table.concat({ r.recorded and 'recorded' or r.verdict, r.hold, bool(r.adopted), bool(admitted and r.probe),
    int(r.seen or s and s.rel or 0), r.owner, bool(r.may_replay), int(r.retry), int(r.lapsed), int(units_left()), r.holders,
    table.concat(limits, ','), r.answer }, '|')
  return s and slot_reply(s, us, reply) or reply
end

-- Steps 1 and 2: an answer is there, or the id has been here.
local function before()
  if keyed and awaits then
    local scope, left = key_left_answer(KEYS[14], now)
    if scope then
      r.verdict, r.may_replay = 'answered', key_may_replay(scope, d.scope, d.bare)
      r.answer = r.may_replay and left or ''
      return true
    end
  end
  if keyed then rec = key_load(KEYS[8], now) end
  if gated then
    local extra = { 'h:' .. d.id, 't:' .. d.id }
    if d.subject ~= '' then extra[#extra + 1] = 'u:' .. d.subject end
    if rec and rec.hold ~= '' then extra[#extra + 1] = 'h:' .. rec.hold end
    if d.under ~= '' then extra[#extra + 1] = 'h:' .. d.under end
    if d.target ~= '' then extra[#extra + 1] = 'h:' .. d.target end
    s = slot_load(slot_keys(name, KEYS[9], channel), now, d.truth, extra)
    if slot_finished(s, KEYS[6], KEYS[7]) then
      s = slot_untouched(s.k)
      r.verdict = 'gone'
      return true
    end
    if not decide_known_id(d, r, s) then return false end
    r.recorded = not s.k.index and r.verdict == 'admitted'
    return true
  end
  if keyed and finished(now, KEYS[6], KEYS[7]) then
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
  if not limits or limits[at] == 0 then return false end
  local state = limit_look({ name = name, key = key, interval = limits[at], burst = limits[at + 1] }, us, d.id, resent)
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
  local full = subject_is_full
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
  elseif not r.verdict and only_looks then
    r.verdict = 'looked'
  end
  return r.verdict ~= nil
end

-- Steps 3 to 11; true when there is a verdict.
local function look()
  if gated and d.books then r.lapsed = slot_lapse(s, d.keep_unknown) end
  if keyed and decide_key(d, r, rec) then return true end
  if gated and under() then return true end
  if limited('subject', KEYS[12], 1, 'limited_subject') or limited('client', KEYS[13], 3, 'limited_client') then return true end
  if not gated then return false end
  if not d.books then return decide_cancel(d, r, s) end
  return decide_subject(d, r, s) or subject_full() or decide_units(d, r, s)
    or limited('slot', KEYS[11], 5, 'limited_slot') or decide_room(d, r, s)
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
  slot_finish(s, KEYS[7], '')
elseif resent and keyed then
  finish(KEYS[7], '', now)
end
if gated and d.truth ~= NO_TRUTH then decide_look(d, s) end
if gated then slot_save(s, us, d.retain) end
return answer()
