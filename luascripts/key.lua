-- The key record is a string, packed as
--
--   version of the form|state|lease|exp|wait|fingerprint|scope hash|owner|hold|by|answer
--
-- state is running, done or unknown, lease until when the owner is awaited, exp when the
-- key is forgotten, wait until when twins wait, owner the attempt that owns it, by the call
-- that claimed it (on a cluster), answer the stored answer, which may hold anything. Beside it,
-- under the same hash tag, the owner leaves its answer for waiting twins: a string
-- expires|scope hash|answer.

local KEY_RECORD = '^%d+|(%a+)|(%d+)|(%d+)|(%d+)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|(.*)$'

local function key_load(key, now)
  local packed = redis.call('GET', key)
  local rec = { key = key, now = now, state = 'none', owner = false, hold = '', scope = '', lease = 0, expires = 0, wait = 0 }
  if not packed then return rec end
  check_schema(string.match(packed, '^[^|]*'), key)
  local state, lease, expires, wait, fingerprint, scope, owner, hold, by, answer = string.match(packed, KEY_RECORD)
  if not state then error({ err = 'SCHEMA ' .. key .. ' has a record that no gate wrote' }) end
  if tonumber(expires) <= now then return rec end
  rec.state, rec.owner, rec.hold, rec.fingerprint, rec.scope = state, owner, hold, fingerprint, scope
  rec.lease, rec.expires, rec.wait, rec.by, rec.answer = tonumber(lease), tonumber(expires), tonumber(wait), by, answer
  rec.overdue = state == 'running' and rec.lease <= now
  return rec
end

-- Whether a caller may be given what the owner of this scope got (P5).
local function key_may_replay(scope, asking, bare)
  if scope ~= asking then return false end
  return scope ~= '' or bare
end

-- Writes a record in the place of rec. A key that was known is not forgotten sooner.
local function key_write(rec, ttl, state, owner, hold, fingerprint, scope, lease, wait, by, answer)
  local expires = math.max(rec.expires, rec.now + ttl)
  redis.call('SET', rec.key, table.concat({ SCHEMA, state, int(lease), int(expires), int(wait), fingerprint, scope,
    owner, hold, by, answer }, '|'), 'PX', int(expires - rec.now))
end

-- Writes rec as it is by now.
local function key_rewrite(rec, ttl)
  key_write(rec, ttl, rec.state, rec.owner, rec.hold, rec.fingerprint, rec.scope, rec.lease, rec.wait, rec.by, rec.answer)
end

-- Makes id the owner, with the hold it goes under, and by the call that claims. A key that
-- was known keeps its expiry unless the claim outlives it.
local function key_claim(rec, id, hold, fingerprint, scope, lease, ttl, by)
  if rec.state ~= 'none' then ttl = lease end
  key_write(rec, math.max(ttl, lease), 'running', id, hold, fingerprint, scope, rec.now + lease, rec.wait, by or '', '')
end

local function key_complete(rec, ttl, answer)
  rec.state, rec.answer = 'done', answer
  key_rewrite(rec, ttl)
end

local function key_unknown(rec, ttl)
  rec.state = 'unknown'
  key_rewrite(rec, ttl)
end

-- A twin says until when it waits, so that the owner leaves its answer and a notice.
local function key_wait(rec, wait)
  if wait > 0 and rec.now + wait > rec.wait then
    rec.wait = rec.now + wait
    key_rewrite(rec, 0)
  end
end

-- Wakes the twins.
local function key_tell(rec, channel)
  if rec.wait > rec.now then redis.call('PUBLISH', channel, rec.key) end
end

-- An owner that has no answer leaves none: its twins ask afresh.
local function key_leave_answer(rec, key, answer, channel)
  if rec.wait <= rec.now then return end
  if answer ~= '' then
    redis.call('SET', key, int(rec.wait) .. '|' .. rec.scope .. '|' .. answer, 'PX', int(rec.wait - rec.now))
  end
  key_tell(rec, channel)
end

-- What an owner left: nil, or the scope it stands under and the answer.
local function key_left_answer(key, now)
  local left = redis.call('GET', key)
  if not left then return nil end
  local expires, scope, answer = string.match(left, '^(%d+)|([^|]*)|(.*)$')
  if not expires or tonumber(expires) <= now then return nil end
  return scope, answer
end
