-- A slot as operators see it, a flat reply of strings: own capacity ("" none),
-- confirmed, held, closed 0|1, own opening time in ms ("" none), full, version,
-- in-flight attempts, touched 0|1, verified 0|1, then id and packed form of up to so many holds: open ones
-- first, then confirmed ones, newest first each.

local function slot_view(s, limit)
  local inflight = redis.call('ZCOUNT', s.k.run, '(' .. int(s.now), '+inf')
  local view = { s.own, int(s.conf), int(s.held), s.closed, s.opens, int(s.full), int(s.ver), int(inflight),
    slot_is_dirty(s) and '1' or '0', slot_verified(s) and '1' or '0' }
  if limit == 0 then return view end
  -- Finished holds stand among the open ones until they are forgotten.
  local open = redis.call('ZREVRANGEBYSCORE', s.k.due, '(' .. int(CONFIRMED_ZONE), '-inf', 'LIMIT', 0, 2 * limit)
  local confirmed = redis.call('ZREVRANGEBYSCORE', s.k.due, '+inf', int(CONFIRMED_ZONE), 'LIMIT', 0, limit)
  local ids, names = {}, {}
  for _, list in ipairs({ open, confirmed }) do
    for _, id in ipairs(list) do
      ids[#ids + 1] = id
      names[#names + 1] = 'h:' .. id
    end
  end
  slot_prefetch(s, names)
  for _, id in ipairs(ids) do
    local h = slot_hold(s, id)
    if h and not hold_is_finished(h) and #view < 10 + 2 * limit then
      view[#view + 1] = id
      view[#view + 1] = hold_pack(h)
    end
  end
  return view
end
