-- The key record is a hash of its own: v, st (running, done, unknown), own (the
-- attempt that owns it), hold, fp (fingerprint), sc (scope hash), lease (until when
-- the owner is awaited), exp (when the key is forgotten), wait (until when twins
-- wait), ans (the stored answer), and on a cluster by (the call that claimed it). Beside
-- it, under the same hash tag, the owner leaves its answer for waiting twins: a string
-- expires|scope hash|answer.

local function key_load(key, now)
  local got = redis.call('HMGET', key, 'v', 'st', 'own', 'hold', 'fp', 'sc', 'lease', 'exp', 'wait')
  check_schema(got[1], key)
  local rec = {
    key = key, now = now, stored = got[1], state = got[2] or 'none', owner = got[3], hold = got[4] or '',
    fingerprint = got[5], scope = got[6] or '', lease = tonumber(got[7] or 0),
    expires = tonumber(got[8] or 0), wait = tonumber(got[9] or 0),
  }
  if rec.expires <= now then rec.state, rec.owner, rec.hold, rec.wait = 'none', false, '', 0 end
  if rec.state == 'running' and rec.lease <= now then rec.overdue = true end
  return rec
end

-- Whether a caller may be given what the owner of this scope got (P5).
local function key_may_replay(scope, asking, bare)
  if scope ~= asking then return false end
  return scope ~= '' or bare
end

local function key_write(rec, ttl, fields)
  if rec.stored and rec.state == 'none' then redis.call('DEL', rec.key) end
  local expires = math.max(rec.expires, rec.now + ttl)
  redis.call('HSET', rec.key, 'v', SCHEMA, 'exp', int(expires), unpack(fields))
  redis.call('PEXPIRE', rec.key, int(expires - rec.now))
end

-- Makes id the owner, with the hold it goes under. A key that was known keeps its
-- expiry unless the claim outlives it.
local function key_claim(rec, id, hold, fingerprint, scope, lease, ttl)
  if rec.state ~= 'none' then ttl = lease end
  key_write(rec, math.max(ttl, lease), {
    'st', 'running', 'own', id, 'hold', hold, 'fp', fingerprint, 'sc', scope,
    'lease', int(rec.now + lease), 'wait', int(rec.wait) })
end

local function key_complete(rec, ttl, answer)
  key_write(rec, ttl, { 'st', 'done', 'ans', answer })
end

local function key_unknown(rec, ttl)
  key_write(rec, ttl, { 'st', 'unknown' })
end

-- A twin says until when it waits, so that the owner leaves its answer and a notice.
local function key_wait(rec, wait)
  if wait > 0 and rec.now + wait > rec.wait then
    redis.call('HSET', rec.key, 'wait', int(rec.now + wait))
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
