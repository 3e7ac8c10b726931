-- The slot's part of a cancel's or confirm's settle. It touches the hold that its
-- decide named and nothing else (H10).

-- Whether a look may have found the units of a hold already that a cancel frees now: the
-- cancel ran longer than looks take account of, or an earlier one may have been done.
local function cancel_is_late(s, h, running)
  if not running or running.lease <= s.now or slot_note(s, h.id).doubted then return true end
  for _, c in ipairs(s.cancels) do
    if c.kind == CANCEL and c.hold == h.id and c.lease <= s.now then return true end
  end
  return false
end

-- A cancel was done. The units of one that is late are left to the next look.
local function cancel_done(d, r, s, h, late)
  if not hold_is_booked(h) then return end
  if #h.attempts > 0 then
    -- One of them may book again (H8, H11).
    s.adm = s.adm + h.units
    h.expires = d.keep_unknown and 0 or s.now + d.hold_ttl
    slot_move(s, h, 'unknown', 'cancel')
    return
  end
  s.announced = true
  r.look = late and s.kind == TRUTH_REMAINING
  h.expires = s.now + COPY_WINDOW
  slot_move(s, h, 'released', 'cancel', late)
  full_release(s)
  finish(d.hold_grave, 'released', s.now)
end

local function confirm_done(d, r, s, h)
  local expired = h.state == 'lapsed' or h.state == 'unknown' and h.expires == KEPT
  if h.state ~= 'pending' and not expired then return end
  r.late = h.state == 'lapsed'
  slot_move(s, h, 'confirmed', 'confirm', true)
  if r.late then r.oversold = math.min(h.units, slot_over(s, d.capacity)) end
end

local function settle_cancel(d, r, s)
  local h = d.hold ~= '' and slot_hold(s, d.hold)
  r.state = h and h.state or d.hold ~= '' and finished(s.now, d.hold_grave, d.hold_grave) or ''
  if finished(s.now, d.attempt_grave, d.attempt_grave) then return end
  r.applied = true
  if s.known then finish(d.attempt_grave, '', s.now) end
  local running, i = cancel_of(s, d.id)
  if running then
    table.remove(s.cancels, i)
    s.recalled, s.freed = true, true
  end
  if h and d.outcome == 'unknown' and not d.confirms then slot_doubt(s, h.id) end
  r.look = d.outcome == 'unknown' or d.outcome == 'done' and r.state == ''
  if h and d.outcome == 'done' then
    if d.confirms then
      confirm_done(d, r, s, h)
    else
      cancel_done(d, r, s, h, cancel_is_late(s, h, running))
    end
    r.state = h.state
    pool_note(d, h, s.now)
  end
  if r.look then truth_ask(s) end
end
