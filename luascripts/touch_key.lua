-- The key of a request that a gate passed by goes to it where nobody has it or its
-- outcome is not known. hold is what the request goes under.

local function claim_forced(rec, f, hold)
  local unanswered = rec.state == 'unknown' or rec.overdue
  if rec.state == 'none' or unanswered and rec.fingerprint == f.fingerprint then
    key_claim(rec, f.id, hold, f.fingerprint, f.scope, f.lease, f.key_ttl)
  end
end
