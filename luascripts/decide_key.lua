-- Step 4 of decide: what the key record says. Each function of a decide returns
-- true when it has put the verdict into r. Nothing but a twin's registration and
-- the completion of an overtaken key is written.

-- A cancel of the subject runs: its booking waits (H9).
local function cancel_busy(d, r, s, subject)
  local running = cancel_running(s, subject)
  if not running then return false end
  r.verdict, r.owner, r.retry = 'subject_busy', running.id, running.lease - s.now
  slot_wait(s, d.wait)
  return true
end

-- The hold of an unanswered attempt goes on under this one (H3); not one whose units a
-- look may have counted free (H8).
local function adopt(d, r, s, h)
  local closed = h.expires == KEPT or slot_doubted(s, h)
  if not closed and cancel_busy(d, r, s, h.subject) then return end
  if closed or h.adoptions >= MAX_ADOPTIONS then
    r.verdict = 'outcome_unknown'
    return
  end
  r.verdict, r.hold, r.adopted = 'admitted', h.id, true
  h.adoptions = h.adoptions + 1
  h.expires = s.now + d.hold_ttl
  slot_start_attempt(s, h, d.id, d.lease)
  slot_move(s, h, 'held', 'adopt')
  pool_note(d, h, s.now)
end

local function replay(d, r, rec)
  if key_may_replay(rec.scope, d.scope, d.bare) then
    r.verdict, r.may_replay = 'replay', true
    r.answer = redis.call('HGET', rec.key, 'ans') or ''
  else
    r.verdict = 'key_done'
  end
end

-- A key whose first attempt is unanswered, under unknown: retry.
local function retry_unknown(d, r, rec, s)
  local h = s and d.books and rec.hold ~= '' and slot_hold(s, rec.hold)
  if not h or hold_is_finished(h) then return false end -- gone: a new hold is taken (H22)
  if hold_is_booked(h) then
    key_complete(rec, d.key_ttl, '') -- H21
    replay(d, r, rec)
    return true
  end
  adopt(d, r, s, h)
  return true
end

local function decide_key(d, r, rec, s)
  if rec.state == 'none' then return false end
  if rec.fingerprint ~= d.fingerprint then
    r.verdict = 'mismatch'
    return true
  end
  if rec.state == 'done' then
    replay(d, r, rec)
    return true
  end
  if rec.state == 'running' and not rec.overdue then
    r.verdict, r.owner, r.retry = 'twin', rec.owner, rec.lease - rec.now
    r.may_replay = key_may_replay(rec.scope, d.scope, d.bare)
    key_wait(rec, d.wait)
    return true
  end
  if not d.retry_unknown or rec.scope ~= d.scope then
    r.verdict = 'outcome_unknown'
    return true
  end
  return retry_unknown(d, r, rec, s)
end
