-- The key's part of settle: only its owner completes or releases it. r is what the
-- slot's part found. With no slot (a guard) the key alone tells whether the attempt
-- has been settled. apart: the slot's part was a call of its own, on another shard. Where
-- that had settled the attempt before, a key that still runs, or a booking never seen that
-- has left no tombstone here, was left by a gate that died in between.

local function settle_key(d, r, rec, answer_key, gated, apart)
  local owned = rec.owner == d.id and rec.state ~= 'done'
  if not gated then
    r.applied = owned or rec.owner ~= d.id and not finished(rec.now, d.attempt_grave, d.attempt_grave)
    if d.outcome == 'unknown' and rec.state == 'unknown' then r.applied = false end
  end
  local left = apart and (owned and rec.state == 'running'
    or r.unseen and not finished(rec.now, d.attempt_grave, d.attempt_grave))
  if not r.applied and not left then return end
  local unknown = d.outcome == 'unknown' or d.books and (r.state == 'unknown' or r.state == 'held')
  local unanswered = rec.fingerprint == d.fingerprint and (rec.state == 'unknown' or rec.overdue)
  if owned then
    key_leave_answer(rec, answer_key, d.answer, d.channel)
    if unknown then
      if rec.state ~= 'unknown' then key_unknown(rec, d.key_ttl) end
    elseif d.keep then
      key_complete(rec, d.key_ttl, d.answer)
    else
      redis.call('DEL', rec.key)
    end
  elseif d.keep and not unknown and (rec.state == 'none' or r.unseen and unanswered) then
    -- Lost, or written back after an outage: over none or unknown only.
    key_write(rec, d.key_ttl, { 'st', 'done', 'own', d.id, 'hold', d.hold, 'fp', d.fingerprint,
      'sc', d.scope, 'lease', '0', 'wait', '0', 'ans', d.answer })
    key_tell(rec, d.channel)
  end
  -- A record that stays keeps late copies of the decide out by itself.
  local stays = apart and owned and d.keep
  if not unknown and (apart and not stays or not gated) then finish(d.attempt_grave, '', rec.now) end
end
