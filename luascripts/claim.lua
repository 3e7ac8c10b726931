-- Claims an idempotency key for a request before its slot is asked, on a cluster: the
-- key's steps of decide (gate/store, "What decide does"). The claim fixes the hold that
-- the request goes under.
--
-- KEYS  1 key record  2 awaited answer  3 tombstone of the id  4 tombstone of this call
-- ARGV  1 clock ahead, ms  2 resent 0|1  3 channel of notices (not needed)  4 id
--       5 this call  6 lease, ms  7 key ttl, ms  8 scope hash  9 bare replay 0|1
--       10 fingerprint  11 retry unknown 0|1  12 wait, ms  13 awaits an answer 0|1
--       14 has a slot 0|1  15 books 0|1  16 the slot does not know this id 0|1
--       17 run
-- Reply verdict, hold, owner, may replay 0|1, answer, retry after in ms; then, for a claim
--       to be given back, the owner that the key had, the hold it went under, and its state.
--       All are strings. The verdict is claimed, or known: the key is this request's already (a
--       claim of its own goes on under this call), or the key's own (decide_key.lua). A
--       second copy finds the claim, a late first one a tombstone.

local now = clock(ARGV[1])
local gated = ARGV[14] == '1'
local d = {
  id = ARGV[4], scope = ARGV[8], bare = ARGV[9] == '1', fingerprint = ARGV[10], retry_unknown = ARGV[11] == '1',
  wait = tonumber(ARGV[12]), books = gated and ARGV[15] == '1', under = '',
}
local r = { hold = '', owner = '', answer = '', retry = 0 }
local rec

-- Whose the key was. A claim of the request's own that goes on was made of nothing, unless
-- it goes under another's hold.
local function given_back_to()
  if not rec or rec.state == 'none' then return '' end
  if rec.owner == d.id and (rec.hold == d.id or rec.hold == '') then return '' end
  return rec.owner
end

local function reply(verdict)
  return { verdict, r.hold, r.owner, r.may_replay and '1' or '0', r.answer, int(r.retry),
    given_back_to(), rec and rec.hold or '', rec and rec.state or '' }
end

local function awaited()
  if ARGV[13] ~= '1' then return false end
  local scope, left = key_left_answer(KEYS[2], now)
  if not scope then return false end
  r.may_replay = key_may_replay(scope, d.scope, d.bare)
  r.answer = r.may_replay and left or ''
  return true
end

-- What the request's own record says: nil where it has none.
local function known()
  if rec.state == 'none' or rec.owner ~= d.id then return nil end
  if not gated then return rec.state == 'running' and 'claimed' or 'gone' end
  if rec.state == 'done' then return nil end
  if ARGV[16] ~= '1' then return 'known' end
  if rec.state == 'running' and not rec.overdue then return 'claimed' end
end

if awaited() then return reply('answered') end
if finished(now, KEYS[3], KEYS[4]) then return reply('gone') end
if ARGV[2] == '1' then finish(KEYS[4], '', now) end
rec = key_load(KEYS[1], now)
local own = known()
if own then
  r.hold = rec.hold
  if own == 'claimed' then
    rec.by = ARGV[5]
    key_rewrite(rec, 0)
  end
  return reply(own)
end
if decide_key(d, r, rec) then return reply(r.verdict) end
if d.books then r.hold = d.under ~= '' and d.under or d.id end
key_claim(rec, d.id, r.hold, d.fingerprint, d.scope, tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[5])
return reply('claimed')
