-- Step 4 of decide: what the key record says. Each function of a decide returns
-- true when it has put the verdict into r. Nothing but a twin's registration is written.

local function replay(d, r, rec)
  if key_may_replay(rec.scope, d.scope, d.bare) then
    r.verdict, r.may_replay = 'replay', true
    r.answer = rec.answer
  else
    r.verdict = 'key_done'
  end
end

-- Without a verdict, d.under is the hold that the key's first attempt left, "" none.
local function decide_key(d, r, rec)
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
  if d.books then d.under = rec.hold end
  return false
end
