-- What a slot knows of truth (gate/store, "Truth"): the field v, in pools that have a
-- source, packed with "|" between:
--
--   cap|total|at|checked|failed|fence|born|due|asked|moved|looking|pending|hot|refresh
--
--   cap      with it available = cap - conf - held, signed; "" not known. What must not
--            move the units available moves cap.
--   total    units in all as the source told, -1 not told
--   at       when, in µs, the last look that was applied began, or the last touch
--   checked  when that look began         failed   the run under which it found no value
--   fence    of the leader who applied    born     tells this life of the slot, µs
--   due      when a look is due, as far as the slot has asked for one; 0 not
--   asked    when one was last asked for at once
--   moved    when, in µs, something moved last: the first time after looking exactly, then
--            within MOVED_STEP
--   looking  when, in µs, the latest look began
--   pending  units of pending holds       hot, refresh  as the latest call said

local NO_TRUTH = '0'
local TRUTH_TOTAL = '1'
local TRUTH_REMAINING = '2'
local TRUTH_STATE = '^(-?%d*)|(-?%d+)|(%d+)|(%d+)|(%w*)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)$'

local function truth_unpack(packed, key)
  if not packed then
    return { total = LEARNED, at = 0, checked = 0, failed = '', fence = 0, born = 0, due = 0, asked = 0,
      moved = 0, looking = 0, pending = 0, hot = 0, refresh = 0 }
  end
  local cap, total, at, checked, failed, fence, born, due, asked, moved, looking, pending, hot, refresh =
    string.match(packed, TRUTH_STATE)
  if not cap then error({ err = 'SCHEMA ' .. key .. ' has a state of truth that no gate wrote' }) end
  return {
    cap = tonumber(cap), total = tonumber(total), at = tonumber(at), checked = tonumber(checked),
    failed = run_is_another_shards(failed) and RUN or failed, fence = tonumber(fence), born = tonumber(born), due = tonumber(due),
    asked = tonumber(asked), moved = tonumber(moved), looking = tonumber(looking),
    pending = tonumber(pending), hot = tonumber(hot), refresh = tonumber(refresh),
  }
end

local function truth_pack(v)
  return table.concat({ v.cap and int(v.cap) or '', int(v.total), int(v.at), int(v.checked), v.failed,
    int(v.fence), int(v.born), int(v.due), int(v.asked), int(v.moved), int(v.looking),
    int(v.pending), int(v.hot), int(v.refresh) }, '|')
end

-- Whether the counters were verified against truth under the store's present run.
local function truth_counts(s)
  return s.kind == TRUTH_REMAINING and s.v.cap ~= nil and s.run == RUN
end

-- Whether the last look found no value: the counters then only refuse.
local function truth_failed(s) return s.kind ~= NO_TRUTH and s.v.failed == RUN end

-- Whether a look that was applied began no longer ago than so many ms, and speaks still.
local function truth_fresh(s, age)
  local speaks = truth_failed(s) or truth_counts(s) or s.kind == TRUTH_TOTAL and s.v.total ~= LEARNED
  return speaks and s.now - s.v.checked <= age
end

-- After a change of run: how long the slot's first load must wait (H17).
local function truth_wait(s, hold_ttl)
  if s.kind ~= TRUTH_REMAINING or RUN_CHANGED == '0' or truth_counts(s) then return 0 end
  return math.max(0, math.ceil(RUN_SINCE / 1000) + hold_ttl - s.now)
end

-- How often the slot is to be looked at, as the pool says now.
local function truth_pace(s, hot, refresh)
  local v = s.v
  if v.hot ~= hot or v.refresh ~= refresh then v.hot, v.refresh, s.retold = hot, refresh, true end
end

-- Asks for a look at a time. A slot whose look is due already, or has been handed
-- out, asks for no other: the apply of that look plans the next one.
local function truth_due(s, at)
  local v = s.v
  if v.due == 0 or at < v.due or v.due < s.now - DUE_LOST then
    v.due, s.retold, s.plan = at, true, true
  end
end

local function truth_ask(s)
  if s.kind == NO_TRUTH or not s.known then return end
  s.v.asked, s.retold = s.now, true
  truth_due(s, s.now)
end

-- Something has moved: a look is due soon, and when one of the holds that moved lapses.
local function truth_moved(s, us)
  local v = s.v
  if v.moved <= v.looking or us - v.moved >= MOVED_STEP * 1000 then v.moved, s.retold = us, true end
  local at = s.now + v.hot
  for _, h in pairs(s.holds) do
    if h.changed and hold_is_open(h) and h.expires > KEPT then at = math.min(at, h.expires) end
  end
  truth_due(s, at)
end
