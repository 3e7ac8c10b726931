-- Writing a slot back: one pass over what changed, and a new lease of life for
-- every key written.

-- Where a hold stands in due; nil where it stands already: a confirmed hold that was so
-- before.
local function slot_hold_score(s, h)
  if h.state == 'confirmed' then return h.booked and CONFIRMED_ZONE + h.booked end
  if h.expires == 0 then return s.now + KEPT_RECHECK end
  if h.expires == KEPT then return KEPT_ZONE end
  return h.expires
end

-- Notes the slot in its pool's index, on its creation and now and then.
local function slot_touch_index(s, us, retain)
  if not s.k.index or s.now - s.idx < INDEX_TOUCH then return end
  s.idx = s.now
  index_note(s.k.index, s.k.name, us, retain)
end

-- Plans the slot's look, or has the gate plan it.
local function slot_plan(s, due, retain)
  if s.k.looks then
    looks_plan(s.k.looks, s.k.name, due, retain)
  else
    s.planned = due
  end
end

local function slot_write_holds(s, set, unset)
  local due, undue = {}, s.unlisted or {}
  local function list(score, id)
    due[#due + 1] = int(score)
    due[#due + 1] = id
    if score < KEPT_ZONE and (s.first == 0 or score < s.first) then s.first = score end
  end
  if not s.known then list(ATTEMPT_ZONE, '@') end
  for _, a in ipairs(s.started) do list(ATTEMPT_ZONE + a.lease, '@' .. a.id) end
  for id, h in pairs(s.holds) do
    if h.changed and hold_is_finished(h) and #h.attempts == 0 and not h.remembered then
      -- Nobody can settle it any more: its tombstones are enough.
      unset[#unset + 1] = 'h:' .. id
      unset[#unset + 1] = 'f:' .. id
      s.notes[id] = nil
      undue[#undue + 1] = id
      slot_subject_list(s, h, false)
    elseif h.changed then
      slot_subject_list(s, h, hold_is_open(h) or #h.attempts > 0)
      set[#set + 1] = 'h:' .. id
      set[#set + 1] = hold_pack(h)
      local score = slot_hold_score(s, h)
      if score then list(score, id) end
      if h.state == 'pending' and h.booked then list(CONFIRMED_ZONE + h.booked, '+' .. id) end
    end
  end
  for _, id in ipairs(s.forget or {}) do
    local h = s.holds[id]
    if not (h and h.changed) then
      undue[#undue + 1] = id
      unset[#unset + 1] = 'h:' .. id
      unset[#unset + 1] = 'f:' .. id
      if h then slot_subject_list(s, h, false) end
      for _, a in ipairs(h and h.attempts or {}) do
        if a.id ~= id then unset[#unset + 1] = 't:' .. a.id end
      end
    end
  end
  -- One that ended goes with others that go; else it is moved along, and goes later.
  if s.ended and (#undue > 0 or #due == 0) then
    undue[#undue + 1] = '@' .. s.ended
  elseif s.ended then
    list(ATTEMPT_ZONE + ATTEMPT_ENDED, '@' .. s.ended)
  end
  if #due > 0 then redis.call('ZADD', s.k.due, unpack(due)) end
  if #undue > 0 then redis.call('ZREM', s.k.due, unpack(undue)) end
end

local function slot_save_truth(s, us, retain, set)
  local v = s.v
  if #s.entries > 0 then truth_moved(s, us) end
  if v.born == 0 then v.born, s.retold = us, true end
  if s.retold then
    set[#set + 1] = 'v'
    set[#set + 1] = truth_pack(v)
  end
  if s.plan then slot_plan(s, v.due, retain) end
end

-- Every transition stands in the slot's ledger, and in the pool's outbox where a program
-- has made one. On a cluster the gates carry it there, and until then it is not trimmed.
local function slot_write_entries(s)
  if #s.entries == 0 then return end
  local length = s.k.outbox and LEDGER_LENGTH or LEDGER_UNSHIPPED
  for _, entry in ipairs(s.entries) do redis.call('XADD', s.k.log, 'MAXLEN', '~', length, '*', 'e', entry) end
  if not s.k.outbox or s.quiet > s.now then return end
  for _, entry in ipairs(s.entries) do s.heard = outbox_add(s.k.outbox, s.k.name, entry) end
  s.quiet = s.heard and 0 or s.now + OUTBOX_LOOK
end

-- Has Redis keep the slot's keys for at least as long as the slot is remembered, and now
-- and then for longer, so that not every call need do so.
local function slot_keep_keys(s, retain)
  if s.keep >= s.exp then return end
  local life = retain + math.max(KEEP_MORE, math.floor(retain / 8))
  s.keep = s.now + life
  s.keeps = life
end

-- Writes what has changed. A slot's keys live and go together, so all of them get
-- a new lease of life.
local function slot_save(s, us, retain)
  local set, unset = {}, {}
  slot_write_holds(s, set, unset)
  for id, hold in pairs(s.attempts) do
    if hold then
      set[#set + 1] = 't:' .. id
      set[#set + 1] = hold
    else
      unset[#unset + 1] = 't:' .. id
    end
  end
  for hash, subject in pairs(s.subjects) do
    if subject.changed and subject.booked == 0 and #subject.holds == 0 then
      unset[#unset + 1] = 'u:' .. hash
    elseif subject.changed then
      set[#set + 1] = 'u:' .. hash
      set[#set + 1] = int(subject.booked) .. '|' .. table.concat(subject.holds, ',') .. '|' .. table.concat(subject.ids, ',')
    end
    if subject.stood and subject.stand_in then
      set[#set + 1] = 's:' .. hash
      set[#set + 1] = subject.stand_in
    elseif subject.stood then
      unset[#unset + 1] = 's:' .. hash
    end
  end
  for id, note in pairs(s.notes) do
    if note.changed then
      set[#set + 1] = 'f:' .. id
      set[#set + 1] = (note.doubted and '1' or '0') .. '|' .. (note.booked and int(note.booked) or '')
        .. '|' .. note.reference
    end
  end
  if s.recalled and #s.cancels > 0 then
    set[#set + 1] = 'c'
    set[#set + 1] = cancels_pack(s.cancels)
  elseif s.recalled then
    unset[#unset + 1] = 'c'
  end
  if s.marked and s.full > 0 then
    set[#set + 1] = 'm'
    set[#set + 1] = slot_pack_mark(s)
  elseif s.marked then
    unset[#unset + 1] = 'm'
  end
  if s.dirtied then
    local marks = {}
    for gate, till in pairs(s.dirty) do marks[#marks + 1] = gate .. ':' .. int(till) end
    if #marks > 0 then
      set[#set + 1] = 'd'
      set[#set + 1] = table.concat(marks, ',')
    else
      unset[#unset + 1] = 'd'
    end
  end
  if s.strayed then
    set[#set + 1] = 'k'
    set[#set + 1] = strays_pack(s)
  end
  local changed = #set > 0 or #unset > 0 or s.waited_for or s.announced or s.by_operator
  if not changed and not ((s.retold or s.noted) and s.known) then return end

  if s.kind ~= NO_TRUTH then slot_save_truth(s, us, retain, set) end
  slot_touch_index(s, us, retain)
  if changed then s.ver = s.ver + 1 end
  if changed or s.retold then s.exp = s.now + retain end
  -- What was finished or refused before the slot was known may have left tombstones.
  if not s.known then s.grave = s.now + COPY_WINDOW end
  slot_keep_keys(s, retain)
  slot_write_entries(s)
  if not s.known or s.verified then
    set[#set + 1] = 'r'
    set[#set + 1] = s.run
  end
  redis.call('HSET', s.k.hash, 's', slot_pack_state(s), unpack(set))
  if #unset > 0 then redis.call('HDEL', s.k.hash, unpack(unset)) end
  if changed and s.ver % TRIM == 0 then
    -- Attempts that ended, or that nobody settled, count for nothing.
    redis.call('ZREMRANGEBYSCORE', s.k.due, ATTEMPTS, int(ATTEMPT_ZONE + s.now))
  end
  if s.keeps then
    redis.call('PEXPIRE', s.k.hash, int(s.keeps))
    redis.call('PEXPIRE', s.k.due, int(s.keeps))
  end
  if s.keeps or s.unledgered and #s.entries > 0 then redis.call('PEXPIRE', s.k.log, int(s.keep - s.now)) end
  if s.heard then redis.call('PEXPIRE', s.k.outbox, int(s.keep - s.now)) end
  if s.by_operator or s.dirtied or s.announced or s.freed and s.qw > s.now then
    redis.call('PUBLISH', s.k.channel, s.k.hash)
  end
end

-- What a script of a slot replies: as it is, or, on a cluster, with what the gate must
-- carry to other shards: the slot's time in µs, when its look is due in ms ("" as it was,
-- 0 not), whether there are ledger entries to be shipped 0|1, and for each hold of which
-- the pool is to know its id, subject hash, units (0 finished) and for how long, ms.
local function slot_reply(s, us, reply)
  if s.k.index then return reply end
  local told = { reply, int(us), s.planned and int(s.planned) or '', #s.entries > 0 and '1' or '0' }
  for _, note in ipairs(s.pooled) do
    for _, value in ipairs(note) do told[#told + 1] = value end
  end
  return told
end
