-- A slot is a hash. These fields are its own state, but for s each packed with "|" between:
--
--   s   version of the form|, then as doubles of 8 bytes, least first:
--       exp conf held adm ver first keyed quiet, ref rel qw idx keep grave own opens closed odd
--   m   full|probeat|pause|probelease|probe    (full.lua; only while marked)
--   r   the run of the store under which the counters were verified
--   d   gate:until,gate:until,…  of gates that passed requests by (only while any)
--   v   what is known of truth                 (truth.lua; only in pools with a source)
--   c   cancels and confirms that run          (cancel.lua; only while any)
--   k   keys that were used here and stand by no hold  (holders.lua; only while any)
--   g   how far the ledger was shipped         (ship.lua; only on a cluster)
--
--   exp    when the idle slot is dropped         conf   units of confirmed holds
--   held   units of held, pending, unknown ones  adm    units ever admitted
--   ref    units ever returned by failures       rel    the release counter
--   ver    grows with every change               qw     until when somebody waits here
--   idx    when the pool's index last heard of the slot; on a cluster the gates see to it
--   keep   until when Redis keeps the slot's keys: always longer than exp
--   first  nothing in due is due before, 0 nothing is there that will be
--   grave  until when tombstones of its holds may stand beside it
--   quiet  the pool had no outbox; until when that is believed
--   keyed  until when keys that were used here may be remembered
--   own    capacity, and opens: when it opens, as an operator set them; -2 as configured
--   closed 0 or 1, by an operator                odd    1 where there is m, d or c
--
-- Beside these stand h:ID and f:ID (hold.lua), t:ID (the hold an adopting attempt goes
-- on under), u:HASH and s:HASH (subject.lua). Around the hash, under the same hash tag:
--
--   due   zset of hold ids: when an open hold lapses or a finished one is forgotten;
--         holds that never lapse stand above all times, confirmed ones above these by
--         when they were booked or later (slot_book), and there also +ID of pending ones;
--         above all of these @ID of awaited attempts by the end of their lease, and @
--         alone, so that the zset is never empty
--   log   stream, the ledger of transitions, each one field e:
--         when|hold|subject hash|units|state before|state|cause
--
-- A script loads the slot, changes the table, and writes it back in one slot_save.
-- The table k names the keys. All times are in ms.

local SLOT_STATE = '<dddddddddddddddddd'
local SLOT_HEAD = '<dddddddd' -- what most changes change
local SLOT_TAIL = 67          -- where the rest begins
local SLOT_LENGTH = 146
local AS_CONFIGURED = -2
local SLOT_MARK = '^(%d+)|(%d+)|(%d+)|(%d+)|([^|]*)$'
-- Scores in due. A time of 13 digits, as all are until the year 2286, in a zone is the zone's
-- three digits with the time behind them.
local KEPT_ZONE = 3000000000000000
local BELOW_KEPT = '(3000000000000000'
local CONFIRMED_ZONE = 4000000000000000
local CONFIRMED = '400' -- stands before a time
local ATTEMPT_ZONE = 7000000000000000
local ATTEMPTS = '(7000000000000000' -- all of that zone
local AWAITED_TILL = '700' -- stands before a time
local ATTEMPT_ENDED = 1 -- above that zone's begin: not awaited any more
local ATTEMPT_OVER = '7000000000000001' -- the same
local NO_KEY = -2 -- what PTTL says

-- A key, or nil where KEYS[1] stands for it: on a cluster, where what it names is on
-- another shard.
local function key_here(key)
  if key ~= KEYS[1] then return key end
end

-- The keys of the slot that KEYS begins with in every script of a slot: its own, those
-- of its pool, but for its looks, the channel of notices and the slot's own text.
local function slot_keys(name, looks, channel)
  return { hash = KEYS[1], due = KEYS[2], log = KEYS[3], index = key_here(KEYS[4]), outbox = key_here(KEYS[5]),
    looks = key_here(looks), channel = channel, name = name }
end

local function slot_torn(s)
  error({ err = 'SCHEMA ' .. s.k.hash .. ' has a state that no gate wrote' })
end

local function slot_is_dirty(s) return next(s.dirty) ~= nil end

local function slot_unpack(s, state, mark)
  check_schema(string.match(state, '^[^|]*'), s.k.hash)
  if #state ~= SLOT_LENGTH then slot_torn(s) end
  local own, opens, closed
  s.exp, s.conf, s.held, s.adm, s.ver, s.first, s.keyed, s.quiet, s.ref, s.rel, s.qw, s.idx, s.keep, s.grave, own, opens, closed =
    struct.unpack(SLOT_STATE, state, 3)
  s.own, s.opens = own ~= AS_CONFIGURED and own or nil, opens ~= AS_CONFIGURED and opens or nil
  s.closed = closed == 1
  if mark then
    local full, probeat, pause, probelease, probe = string.match(mark, SLOT_MARK)
    if not full then slot_torn(s) end
    s.full, s.probeat, s.pause = tonumber(full), tonumber(probeat), tonumber(pause)
    s.probelease, s.probe = tonumber(probelease), probe
  end
end

local function slot_pack_state(s)
  local odd = s.full > 0 or slot_is_dirty(s) or #s.cancels > 0
  return SCHEMA .. '|' .. struct.pack(SLOT_STATE, s.exp, s.conf, s.held, s.adm, s.ver, s.first, s.keyed, s.quiet, s.ref, s.rel, s.qw,
    s.idx, s.keep, s.grave, s.own or AS_CONFIGURED, s.opens or AS_CONFIGURED, s.closed and 1 or 0, odd and 1 or 0)
end

local function slot_pack_mark(s)
  return table.concat({ int(s.full), int(s.probeat), int(s.pause), int(s.probelease), s.probe }, '|')
end

-- A gate's mark has ended: with truth, what went past the counters meanwhile makes
-- them unverified.
local function slot_undirty(s)
  s.dirtied = true
  if s.kind == TRUTH_REMAINING then s.run, s.verified = 'none', true end
end

-- A slot of which nothing is known or changes.
local function slot_untouched(k)
  return { k = k, rel = 0, entries = {}, pooled = {} }
end

-- kind is how truth is known (truth.lua). Fields named in extra are fetched along.
local function slot_load(k, now, kind, extra)
  local got = redis.call('HMGET', k.hash, 's', 'm', 'r', 'd', 'v', 'c', unpack(extra))
  local s = {
    k = k, now = now, kind = kind, known = false, fields = {}, holds = {}, subjects = {}, attempts = {},
    entries = {}, notes = {}, cancels = {}, pooled = {},
    exp = 0, conf = 0, held = 0, adm = 0, ref = 0, rel = 0, ver = 0, qw = 0, idx = 0,
    keep = 0, first = 0, grave = 0, quiet = 0, keyed = 0,
    full = 0, probeat = 0, pause = 0, probelease = 0, probe = '', closed = false,
    run = RUN_CHANGED == '0' and RUN or 'none', dirty = {}, started = {},
  }
  if got[1] then
    slot_unpack(s, got[1], got[2])
    s.known, s.unledgered = true, s.adm == 0
    s.run = got[3] or 'none'
    for gate, till in string.gmatch(got[4] or '', '([^:,]+):(%d+)') do
      if tonumber(till) > now then
        s.dirty[gate] = tonumber(till)
      elseif kind == TRUTH_REMAINING then
        slot_undirty(s) -- nobody will resume for that gate
      end
    end
    if got[6] then s.cancels = cancels_unpack(got[6]) end
    if s.exp <= now then
      redis.call('DEL', k.hash, k.due, k.log)
      return slot_load(k, now, kind, extra)
    end
  end
  if kind ~= NO_TRUTH then s.v = truth_unpack(got[5], k.hash) end
  if run_is_another_shards(s.run) then s.run, s.verified = RUN, true end
  for i, name in ipairs(extra) do s.fields[name] = got[i + 6] end
  return s
end

-- A field beside the slot's own, or false.
local function slot_get(s, name)
  local value = s.fields[name]
  if value == nil then
    value = s.known and redis.call('HGET', s.k.hash, name) or false
    s.fields[name] = value
  end
  return value
end

local function slot_prefetch(s, names)
  local missing = {}
  for _, name in ipairs(names) do
    if s.fields[name] == nil then missing[#missing + 1] = name end
  end
  if #missing == 0 then return end
  local got = s.known and redis.call('HMGET', s.k.hash, unpack(missing)) or {}
  for i, name in ipairs(missing) do s.fields[name] = got[i] or false end
end

-- A hold, or nil; one that is finished and past remembering is nil too, unless
-- forgotten is asked for.
local function slot_hold(s, id, forgotten)
  local h = s.holds[id]
  if not h then
    local packed = slot_get(s, 'h:' .. id)
    if not packed then return nil end
    h = hold_parse(id, packed, s.k.hash)
    s.holds[id] = h
  end
  if not forgotten and hold_is_finished(h) and h.expires <= s.now then return nil end
  return h
end

-- A hold, or an attempt of one, is finished: a tombstone keeps late copies out.
local function slot_finish(s, key, state, subject)
  finish(key, state, s.now, subject)
  s.grave, s.noted = math.max(s.grave, s.now + COPY_WINDOW), true
end

-- What finished (finished.lua) says of two ids of the slot, asked only where there can be any.
local function slot_finished(s, first, second)
  if s.known and s.grave <= s.now then return nil end
  return finished(s.now, first, second)
end

-- Somebody waits for room or units here, and wants a notice.
local function slot_wait(s, wait)
  if s.known and s.now + wait > s.qw then
    s.qw = s.now + wait
    s.waited_for = true
  end
end

-- Whether the counters are those of the store's present run (design H16), or of truth.
local function slot_verified(s)
  if s.kind == TRUTH_REMAINING then return truth_counts(s) end
  return s.run == RUN
end

-- What conf and held may come to. With truth this is not what a person would call the
-- slot's capacity: units taken behind the gate's back are off it.
local function slot_capacity(s, configured)
  if not slot_verified(s) then return LEARNED end
  if s.kind == TRUTH_REMAINING then return math.max(0, s.v.cap) end
  if s.kind == TRUTH_TOTAL then return s.v.total end
  return s.own or configured
end

-- Units in all, as far as that can be told.
local function slot_total(s, configured)
  if s.kind == TRUTH_REMAINING then return slot_verified(s) and s.v.total or LEARNED end
  return slot_capacity(s, configured)
end

-- Whether the counters refuse, but what they have left is not to be believed.
local function slot_doubtful(s) return slot_is_dirty(s) or truth_failed(s) end

local function slot_over(s, configured)
  if truth_counts(s) then return math.max(0, s.conf + s.held - s.v.cap) end
  local capacity = slot_capacity(s, configured)
  if capacity == LEARNED then return 0 end
  return math.max(0, s.conf + s.held - capacity)
end
