-- The full mark of a slot (gate/store, "The full mark"): who may pass it, and what
-- settlements do to it.

-- How a request for so many units stands to the mark: 'free', 'probe' (it may be
-- the lone probe) or 'full', then with the time until that may change.
local function full_look(s, units)
  if s.full == 0 or units < s.full then return 'free' end
  if s.probe ~= '' and s.probelease > s.now then return 'full', s.probelease - s.now end
  if s.probeat > s.now then return 'full', s.probeat - s.now end
  return 'probe'
end

local function full_probe(s, id, lease)
  s.probe = id
  s.probelease = s.now + lease
  s.marked = true
end

local function full_end(s)
  s.marked = s.marked or s.full > 0
  s.full, s.probeat, s.pause, s.probelease = 0, 0, 0, 0
  s.probe = ''
end

-- Units may have come free at the backend: the mark no longer tells the truth, and
-- a sold_out that was decided before this does not either (H12).
local function full_release(s)
  s.rel = s.rel + 1
  full_end(s)
end

local function full_next_probe(s, pause)
  s.probe = ''
  s.probelease = 0
  s.probeat = s.now + pause
  s.marked = true
end

-- The backend said sold out for so many units, to a request that had seen this
-- release counter.
local function full_mark(s, units, seen, is_probe)
  if seen ~= s.rel then return end
  if s.full == 0 then
    s.full = units
    s.pause = FIRST_PAUSE
    full_next_probe(s, s.pause)
    return
  end
  s.full = math.min(s.full, units)
  s.marked = true
  if is_probe then
    s.pause = math.min(2 * s.pause, LAST_PAUSE)
    full_next_probe(s, s.pause)
  end
end

-- The lone probe came back with anything but sold out. ends tells that its hold is
-- confirmed and the slot's capacity a number: there are units again.
local function full_probed(s, outcome, ends)
  if outcome == 'unknown' then
    full_next_probe(s, s.pause)
  elseif outcome == 'never_sent' then
    full_next_probe(s, NEVER_SENT_PAUSE)
  elseif ends then
    full_end(s)
  else
    full_next_probe(s, 0)
  end
end
