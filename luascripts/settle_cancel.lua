-- The slot's part of a cancel's or confirm's settle. It touches the hold that its
-- decide named and nothing else (H10). Helpers stand inside, so that the settle of a
-- booking need not make them.

local function settle_cancel(d, r, s)
  local h = d.hold ~= '' and slot_hold(s, d.hold)
  local running, place = cancel_of(s, d.id)

  -- Whether a look may have found the hold's units already: this cancel ran longer than
  -- looks take account of, or an earlier one may have been done.
  local function late()
    return not running or running.lease <= s.now or slot_doubted(s, h)
  end

  local function cancel()
    if not hold_is_booked(h) then return end
    if #h.attempts > 0 or running and running.open then
      -- One of them may book again, or may have done so since (H8, H11).
      h.expires = s.now + d.hold_ttl
      slot_doubt(s, h.id)
      slot_move(s, h, 'unknown', 'cancel')
      return
    end
    local still = late()
    r.look = still and s.kind == TRUTH_REMAINING
    h.expires = s.now + COPY_WINDOW
    slot_move(s, h, 'released', 'cancel', still)
    full_release(s)
    slot_finish(s, d.hold_grave, 'released', h.subject)
    s.announced = true
  end

  local function confirm()
    local expired = h.state == 'lapsed' or h.state == 'unknown' and h.expires == KEPT
    if h.state ~= 'pending' and not expired then return end
    r.late = h.state == 'lapsed'
    slot_move(s, h, 'confirmed', 'confirm', true)
    if r.late then r.oversold = math.min(h.units, slot_over(s, d.capacity)) end
  end

  r.state = h and h.state or d.hold ~= '' and slot_finished(s, d.hold_grave, d.hold_grave) or ''
  if slot_finished(s, d.attempt_grave, d.attempt_grave) then return settle_again(d, r, s, h) end
  r.applied = true
  if s.known then slot_finish(s, d.attempt_grave, '') end
  -- A store that lost data may be told of the booking after its cancel, by another gate.
  local unseen = d.outcome == 'done' and not d.confirms and d.hold ~= '' and r.state == ''
  if unseen then slot_finish(s, d.hold_grave, 'released') end
  if running then
    if running.kind == CANCEL and running.lease <= s.now then slot_doubt(s, running.hold) end
    table.remove(s.cancels, place)
    s.recalled, s.freed = true, true
  end
  r.look = d.outcome == 'unknown' or d.outcome == 'done' and r.state == ''
  if h and d.outcome == 'unknown' and not d.confirms then slot_doubt(s, h.id) end
  if h and d.outcome == 'done' then
    if d.confirms then
      confirm()
    else
      cancel()
    end
    r.state = h.state
    pool_note(d, s, h)
  end
  if r.look then truth_ask(s) end
end
