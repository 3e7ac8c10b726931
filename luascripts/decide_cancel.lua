-- A cancel's or confirm's decide (gate/store, "Cancel and confirm"): which hold it
-- means, and whether it may run now. Helpers stand inside, so that the decide of a
-- booking need not make them.

-- True when it may not run now; else d.meant is the hold it means, if any, and
-- d.whose the subject.
local function decide_cancel(d, r, s)
  local function may_mean(h)
    return h and (h.state == 'pending' or h.state == 'confirmed' and not d.confirms)
  end

  -- The only booked hold of the subject that can be meant. What its list may have left
  -- out counts as another.
  local function find()
    if d.subject == '' then return nil end
    local subject = slot_subject(s, d.subject)
    if #subject.ids < subject.booked then return nil end
    local found
    for _, id in ipairs(subject.ids) do
      local h = slot_hold(s, id)
      if may_mean(h) and not (d.unreferenced and slot_note(s, id).reference ~= '') then
        if found then return nil end
        found = h
      end
    end
    return found
  end

  -- The subject's booking that is awaited now: the cancel waits for it (H9).
  local function busy()
    local ids = d.whose ~= '' and slot_subject(s, d.whose).holds or {}
    for i = 1, math.min(#ids, SUBJECT_SCAN) do
      local h = slot_hold(s, ids[i])
      local running = h and hold_running(h, s.now)
      if running then
        r.verdict, r.owner, r.retry = 'subject_busy', running.id, running.lease - s.now
        return true
      end
    end
    return false
  end

  local function full()
    local running, first = 0, nil
    for _, c in ipairs(s.cancels) do
      if c.lease > s.now then
        running = running + 1
        first = math.min(first or c.lease, c.lease)
      end
    end
    if running < MAX_CANCELS then return false end
    r.verdict, r.retry = 'no_room', first - s.now
    return true
  end

  -- The subject of a target that is finished is in its tombstone.
  local function whose(h)
    if d.subject ~= '' or d.target == '' then return d.subject end
    if h then return h.subject end
    local _, subject = slot_finished(s, d.target_grave, d.target_grave)
    return subject or ''
  end

  local h
  if d.target == '' then
    h = find()
  else
    h = slot_hold(s, d.target)
  end
  d.meant, d.whose = may_mean(h) and h or nil, whose(h)
  local waits = busy() or full()
  if waits then slot_wait(s, d.wait) end
  return waits
end

local function cancel_admit(d, r, s)
  -- Those that nobody settles any more go.
  for i = #s.cancels, 1, -1 do
    local c = s.cancels[i]
    if c.lease + COPY_WINDOW <= s.now then
      if c.kind == CANCEL and c.hold ~= '' then slot_doubt(s, c.hold) end
      table.remove(s.cancels, i)
    end
  end
  local h = d.meant
  r.verdict, r.hold = 'admitted', h and h.id or ''
  s.cancels[#s.cancels + 1] = { id = d.id, kind = d.confirms and CONFIRM or CANCEL, hold = r.hold,
    open = h ~= nil and #h.attempts > 0, lease = s.now + d.lease, subject = d.whose }
  s.recalled = true
end
