-- The key's part of settle: its owner completes or releases it, and any other attempt of
-- what it stands for completes it when that was booked. r is what the slot's part found.
-- With no slot (a guard) the key alone tells whether the attempt has been settled. apart:
-- the slot's part was a call of its own, on another shard. Where that had settled the
-- attempt before, a key that still runs, one that does not know of its hold's booking, or
-- a booking never seen that has left no tombstone here, was left by a gate that died in
-- between.

local function settle_key(d, r, rec, answer_key, gated, apart)
  local owned = rec.owner == d.id and rec.state ~= 'done'
  if not gated then
    r.applied = owned or rec.owner ~= d.id and not finished(rec.now, d.attempt_grave, d.attempt_grave)
    if d.outcome == 'unknown' and rec.state == 'unknown' then r.applied = false end
  end
  local hold = d.books and d.hold or ''
  local open = rec.fingerprint == d.fingerprint and (rec.state == 'running' or rec.state == 'unknown')
  local made = open and rec.hold == hold and rec.scope == d.scope
    and (d.outcome == 'booked' or d.outcome == 'duplicate' or d.outcome == 'done')
  local left = apart and (owned and rec.state == 'running'
    or made and (r.state == 'confirmed' or r.state == 'pending')
    or r.unseen and not finished(rec.now, d.attempt_grave, d.attempt_grave))
  if not r.applied and not left then return end
  local unknown = d.outcome == 'unknown' or d.books and (r.state == 'unknown' or r.state == 'held')
  local unanswered = open and (rec.state == 'unknown' or rec.overdue)
  if owned then
    key_leave_answer(rec, answer_key, d.answer, d.channel)
    if unknown then
      if rec.state ~= 'unknown' then key_unknown(rec, d.key_ttl) end
    elseif d.keep then
      key_complete(rec, d.key_ttl, d.answer)
    else
      redis.call('DEL', rec.key)
    end
  elseif d.keep and not unknown and (rec.state == 'none' or made or r.unseen and unanswered) then
    -- Lost, booked by an attempt before its retry, or written back after an outage.
    key_write(rec, d.key_ttl, 'done', d.id, hold, d.fingerprint, d.scope, 0, 0, '', d.answer)
    key_tell(rec, d.channel)
  end
  -- A record that stays keeps late copies of the decide out by itself.
  local stays = apart and owned and d.keep
  if not unknown and (apart and not stays or not gated) then finish(d.attempt_grave, '', rec.now) end
end
