-- A slot as operators see it, a flat reply of strings: own capacity ("" none),
-- confirmed, held, closed 0|1, own opening time in ms ("" none), full, version,
-- in-flight attempts, touched 0|1, verified 0|1, capacity as truth tells it ("" not),
-- debt, outside, when the last look began in ms (0 none), whether it failed 0|1, then id,
-- packed form and reference of up to so many holds: open ones first, then confirmed
-- ones, newest first each.

-- What truth tells: capacity, debt, units taken outside, last look, failed.
local function slot_view_truth(s)
  local v = s.v
  if not v then return '', '0', '0', '0', '0' end
  local capacity, debt, outside = '', 0, 0
  if truth_counts(s) then
    local left = v.cap - s.conf - s.held
    debt = math.max(0, -left)
    capacity = int(math.max(0, v.cap))
    if v.total ~= LEARNED then capacity, outside = int(v.total), v.total - v.cap end
  elseif s.kind == TRUTH_TOTAL and v.total ~= LEARNED then
    capacity = int(v.total)
    debt = math.max(0, s.conf + s.held - v.total)
  end
  return capacity, int(debt), int(outside), int(v.checked), v.failed ~= '' and '1' or '0'
end

local function slot_view(s, limit)
  local told, debt, outside, checked, failed = slot_view_truth(s)
  local inflight = redis.call('ZCOUNT', s.k.due, '(' .. int(ATTEMPT_ZONE + s.now), '+inf')
  for _, c in ipairs(s.cancels) do
    if c.lease > s.now then inflight = inflight + 1 end
  end
  local view = { s.own and int(s.own) or '', int(s.conf), int(s.held), s.closed and '1' or '0', s.opens and int(s.opens) or '', int(s.full), int(s.ver), int(inflight),
    slot_is_dirty(s) and '1' or '0', slot_verified(s) and '1' or '0', told, debt, outside, checked, failed }
  if limit == 0 then return view end
  -- Finished holds stand among the open ones until they are forgotten.
  local open = redis.call('ZREVRANGEBYSCORE', s.k.due, '(' .. int(CONFIRMED_ZONE), '-inf', 'LIMIT', 0, 2 * limit)
  local confirmed = redis.call('ZREVRANGEBYSCORE', s.k.due, '(' .. int(ATTEMPT_ZONE), int(CONFIRMED_ZONE), 'LIMIT', 0, limit)
  local ids, names = {}, {}
  for _, list in ipairs({ open, confirmed }) do
    for _, id in ipairs(list) do
      ids[#ids + 1] = id
      names[#names + 1] = 'h:' .. id
      names[#names + 1] = 'f:' .. id
    end
  end
  slot_prefetch(s, names)
  local shown = 0
  for _, id in ipairs(ids) do
    local h = slot_hold(s, id)
    if h and not hold_is_finished(h) and shown < limit then
      shown = shown + 1
      view[#view + 1] = id
      view[#view + 1] = hold_pack(h)
      view[#view + 1] = slot_note(s, id).reference
    end
  end
  return view
end
