-- A hold whose attempts are unanswered goes on under another request: a retry of its
-- key (step 4 of decide), or of its subject (step 6).

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
  slot_keyed(s, d.key, math.max(d.key_ttl, d.lease))
  if d.key ~= h.key then slot_stray(s, d.key) end
  h.expires = s.now + d.hold_ttl
  slot_start_attempt(s, h, d.id, d.lease)
  slot_move(s, h, 'held', 'adopt')
  pool_note(d, s, h)
end

-- The hold that the request's key goes under: "gone" (H22) or "booked" (H21), or there
-- is a verdict. On a cluster a key may name an attempt that went on under a hold of its
-- subject, and died before it could say which.
local function decide_under(d, r, s)
  local h = slot_hold(s, d.under)
  local attempt = not h and not s.k.index and slot_get(s, 't:' .. d.under)
  if attempt then
    h = slot_hold(s, attempt)
    if d.max_per_subject > 0 and d.subject ~= '' then pool_tell(s, d.under, d.subject, 0, COPY_WINDOW) end
  end
  if not h or hold_is_finished(h) then
    if not d.pool_subject and d.max_per_subject > 0 and d.subject ~= '' then
      pool_tell(s, d.under, d.subject, 0, COPY_WINDOW)
    end
    return 'gone'
  end
  if hold_is_booked(h) then return 'booked' end
  adopt(d, r, s, h)
  if not r.adopted and not d.pool_subject then pool_note(d, s, h) end
end
