#!lua
local function clock(ahead)
  local t = redis.call('TIME')
  local us = t[1] * 1000000 + t[2] + ahead * 1000
  return math.floor(us / 1000), us
end
local function int(n)
  return string.format('%d', n)
end
local function check_schema(v, key)
  if v and not (tonumber(v) and tonumber(v) <= (1)) then
    error({ err = 'SCHEMA ' .. key .. ' was written in version ' .. v ..
      ' of the stored form, this gate reads up to ' .. (1) .. '; update this gate' })
  end
end
local function trim_attempts(due, now)
  redis.call('ZREMRANGEBYSCORE', due, '(' .. int((7000000000000000)), int((7000000000000000) + now))
end
local RUN, RUN_OTHERS, RUN_CHANGED, RUN_SINCE = string.match(ARGV[#ARGV], '^([^,|]*)([^|]*)|([01])|(%d+)$')
local function run_is_another_shards(run)
  return RUN_OTHERS ~= '' and run ~= '' and string.find(RUN_OTHERS .. ',', ',' .. run .. ',', 1, true) ~= nil
end
local function finish(key, state, now, subject)
  local value = state .. '|' .. int(now + (30000))
  if subject and subject ~= '' then value = value .. '|' .. subject end
  redis.call('SET', key, value, 'PX', (30000))
end
local function hold_parse(id, packed, key)
  local state, key_hash, expires, adoptions, list, units, subject, taken, fingerprint, scope, text =
    string.match(packed, ('^(%a+)|([^|]*)|(%d+)|(%d+)|([^|]*)|(%d+)|([^|]*)|(%d+)|([^|]*)|([^|]*)|(.*)$'))
  if not state then
    error({ err = 'SCHEMA ' .. key .. ' has a hold that no gate wrote: ' .. id })
  end
  local attempts = {}
  for attempt, lease, seen in string.gmatch(list, '([^:,]*):(%d+):(%d+)') do
    attempts[#attempts + 1] = { id = attempt ~= '' and attempt or id, lease = tonumber(lease), seen = tonumber(seen) }
  end
  return {
    id = id, state = state, units = tonumber(units), subject = subject,
    taken = tonumber(taken), expires = tonumber(expires), adoptions = tonumber(adoptions),
    attempts = attempts, fingerprint = fingerprint, scope = scope, key = key_hash, text = text,
  }
end
local function hold_pack(h)
  local attempts = {}
  for i, a in ipairs(h.attempts) do
    attempts[i] = (a.id ~= h.id and a.id or '') .. ':' .. int(a.lease) .. ':' .. int(a.seen)
  end
  return table.concat({
    h.state, h.key, int(h.expires), int(h.adoptions), table.concat(attempts, ','), int(h.units), h.subject, int(h.taken),
    h.fingerprint, h.scope, h.text,
  }, '|')
end
local function hold_is_open(h)
  return h.state == 'held' or h.state == 'pending' or h.state == 'unknown'
end
local function hold_is_booked(h)
  return h.state == 'confirmed' or h.state == 'pending'
end
local function hold_is_finished(h)
  return h.state == 'lapsed' or h.state == 'released'
end
local function truth_unpack(packed, key)
  if not packed then
    return { total = (-1), at = 0, checked = 0, failed = '', fence = 0, born = 0, due = 0, asked = 0,
      moved = 0, looking = 0, pending = 0, hot = 0, refresh = 0 }
  end
  local cap, total, at, checked, failed, fence, born, due, asked, moved, looking, pending, hot, refresh =
    string.match(packed, ('^(-?%d*)|(-?%d+)|(%d+)|(%d+)|(%w*)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)$'))
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
local function truth_counts(s)
  return s.kind == ('2') and s.v.cap ~= nil and s.run == RUN
end
local function truth_pace(s, hot, refresh)
  local v = s.v
  if v.hot ~= hot or v.refresh ~= refresh then v.hot, v.refresh, s.retold = hot, refresh, true end
end
local function truth_due(s, at)
  local v = s.v
  if v.due == 0 or at < v.due or v.due < s.now - (600000) then
    v.due, s.retold, s.plan = at, true, true
  end
end
local function truth_moved(s, us)
  local v = s.v
  if v.moved <= v.looking or us - v.moved >= (1000) * 1000 then v.moved, s.retold = us, true end
  local at = s.now + v.hot
  for _, h in pairs(s.holds) do
    if h.changed and hold_is_open(h) and h.expires > (1) then at = math.min(at, h.expires) end
  end
  truth_due(s, at)
end
local function cancels_unpack(packed)
  local list = {}
  for id, kind, hold, open, lease, subject in
    string.gmatch(packed, '([^:,]+):(%a):([^:,]*):([01]):(%d+):([^:,]*)') do
    list[#list + 1] = { id = id, kind = kind, hold = hold, open = open == '1', lease = tonumber(lease),
      subject = subject }
  end
  return list
end
local function cancels_pack(list)
  local packed = {}
  for i, c in ipairs(list) do
    packed[i] = table.concat({ c.id, c.kind, c.hold, c.open and '1' or '0', int(c.lease), c.subject }, ':')
  end
  return table.concat(packed, ',')
end
local function key_here(key)
  if key ~= KEYS[1] then return key end
end
local function slot_keys(name, looks)
  return { hash = KEYS[1], due = KEYS[2], log = KEYS[3], index = key_here(KEYS[4]), outbox = key_here(KEYS[5]),
    looks = key_here(looks), channel = ARGV[3], name = name }
end
local function slot_torn(s)
  error({ err = 'SCHEMA ' .. s.k.hash .. ' has a state that no gate wrote' })
end
local function slot_is_dirty(s) return next(s.dirty) ~= nil end
local function slot_unpack(s, state, mark)
  check_schema(string.match(state, '^[^|]*'), s.k.hash)
  if #state ~= (146) then slot_torn(s) end
  local own, opens, closed
  s.exp, s.conf, s.held, s.adm, s.ver, s.first, s.keyed, s.quiet, s.ref, s.rel, s.qw, s.idx, s.keep, s.grave, own, opens, closed =
    struct.unpack(('<dddddddddddddddddd'), state, 3)
  s.own, s.opens = own ~= (-2) and own or nil, opens ~= (-2) and opens or nil
  s.closed = closed == 1
  if mark then
    local full, probeat, pause, probelease, probe = string.match(mark, ('^(%d+)|(%d+)|(%d+)|(%d+)|([^|]*)$'))
    if not full then slot_torn(s) end
    s.full, s.probeat, s.pause = tonumber(full), tonumber(probeat), tonumber(pause)
    s.probelease, s.probe = tonumber(probelease), probe
  end
end
local function slot_pack_state(s)
  local odd = s.full > 0 or slot_is_dirty(s) or #s.cancels > 0
  return (1) .. '|' .. struct.pack(('<dddddddddddddddddd'), s.exp, s.conf, s.held, s.adm, s.ver, s.first, s.keyed, s.quiet, s.ref, s.rel, s.qw,
    s.idx, s.keep, s.grave, s.own or (-2), s.opens or (-2), s.closed and 1 or 0, odd and 1 or 0)
end
local function slot_pack_mark(s)
  return table.concat({ int(s.full), int(s.probeat), int(s.pause), int(s.probelease), s.probe }, '|')
end
local function slot_undirty(s)
  s.dirtied = true
  if s.kind == ('2') then s.run, s.verified = 'none', true end
end
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
      elseif kind == ('2') then
        slot_undirty(s) -- nobody will resume for that gate
      end
    end
    if got[6] then s.cancels = cancels_unpack(got[6]) end
    if s.exp <= now then
      redis.call('DEL', k.hash, k.due, k.log)
      return slot_load(k, now, kind, extra)
    end
  end
  if kind ~= ('0') then s.v = truth_unpack(got[5], k.hash) end
  if run_is_another_shards(s.run) then s.run, s.verified = RUN, true end
  for i, name in ipairs(extra) do s.fields[name] = got[i + 6] end
  return s
end
local function slot_get(s, name)
  local value = s.fields[name]
  if value == nil then
    value = s.known and redis.call('HGET', s.k.hash, name) or false
    s.fields[name] = value
  end
  return value
end
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
local function slot_verified(s)
  if s.kind == ('2') then return truth_counts(s) end
  return s.run == RUN
end
local function slot_capacity(s, configured)
  if not slot_verified(s) then return (-1) end
  if s.kind == ('2') then return math.max(0, s.v.cap) end
  if s.kind == ('1') then return s.v.total end
  return s.own or configured
end
local function subject_ids(list)
  local ids = {}
  for id in string.gmatch(list or '', '[^,]+') do ids[#ids + 1] = id end
  return ids
end
local function slot_subject(s, hash)
  local subject = s.subjects[hash]
  if not subject then
    local booked, open, ids = string.match(slot_get(s, 'u:' .. hash) or '', ('^(%d+)|([^|]*)|(.*)$'))
    subject = { booked = tonumber(booked or 0), holds = subject_ids(open), ids = subject_ids(ids) }
    s.subjects[hash] = subject
  end
  return subject
end
local function slot_subject_list(s, h, listed)
  if h.subject == '' then return end
  local subject = slot_subject(s, h.subject)
  for i, id in ipairs(subject.holds) do
    if id == h.id then
      if not listed then
        table.remove(subject.holds, i)
        subject.changed = true
      end
      return
    end
  end
  if listed then
    subject.holds[#subject.holds + 1] = h.id
    subject.changed = true
  end
end
local function strays_pack(s) return int(s.keyed) .. '|' .. table.concat(s.strays, ',') end
local COUNTER = { held = 'held', pending = 'held', unknown = 'held', confirmed = 'conf' }
local function index_note(index, name, us, retain)
  local life = retain + 2 * (3600000)
  redis.call('ZADD', index, int(us), name)
  redis.call('PEXPIRE', index, int(life))
  local idle = redis.call('ZRANGEBYSCORE', index, '-inf', int(us - life * 1000), 'LIMIT', 0, (64))
  if #idle > 0 then redis.call('ZREM', index, unpack(idle)) end
end
local function looks_plan(looks, name, due, retain)
  if due == 0 then
    redis.call('ZREM', looks, name)
  else
    redis.call('ZADD', looks, int(due), name)
    redis.call('PEXPIRE', looks, int(retain))
  end
end
local function outbox_add(outbox, name, entry, id)
  local t, h, s, u, f, o, c = string.match(entry, '^(%d+)|([^|]*)|([^|]*)|(%d+)|(%a*)|(%a+)|(.*)$')
  if id then
    return redis.call('XADD', outbox, 'NOMKSTREAM', 'MAXLEN', '~', (100000), '*',
      'l', id, 'n', name, 't', t, 'h', h, 's', s, 'u', u, 'f', f, 'o', o, 'c', c)
  end
  return redis.call('XADD', outbox, 'NOMKSTREAM', 'MAXLEN', '~', (100000), '*',
    'n', name, 't', t, 'h', h, 's', s, 'u', u, 'f', f, 'o', o, 'c', c)
end
local function slot_hold_score(s, h)
  if h.state == 'confirmed' then return h.booked and (4000000000000000) + h.booked end
  if h.expires == 0 then return s.now + (600000) end
  if h.expires == (1) then return (3000000000000000) end
  return h.expires
end
local function slot_touch_index(s, us, retain)
  if not s.k.index or s.now - s.idx < (3600000) then return end
  s.idx = s.now
  index_note(s.k.index, s.k.name, us, retain)
end
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
    if score < (3000000000000000) and (s.first == 0 or score < s.first) then s.first = score end
  end
  if not s.known then list((7000000000000000), '@') end
  for _, a in ipairs(s.started) do list((7000000000000000) + a.lease, '@' .. a.id) end
  for id, h in pairs(s.holds) do
    if h.changed and hold_is_finished(h) and #h.attempts == 0 and not h.remembered then
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
      if h.state == 'pending' and h.booked then list((4000000000000000) + h.booked, '+' .. id) end
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
  if s.ended and (#undue > 0 or #due == 0) then
    undue[#undue + 1] = '@' .. s.ended
  elseif s.ended then
    list((7000000000000000) + (1), '@' .. s.ended)
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
local function slot_write_entries(s)
  if #s.entries == 0 then return end
  local length = s.k.outbox and (1000) or (20000)
  for _, entry in ipairs(s.entries) do redis.call('XADD', s.k.log, 'MAXLEN', '~', length, '*', 'e', entry) end
  if not s.k.outbox or s.quiet > s.now then return end
  for _, entry in ipairs(s.entries) do s.heard = outbox_add(s.k.outbox, s.k.name, entry) end
  s.quiet = s.heard and 0 or s.now + (1000)
end
local function slot_keep_keys(s, retain)
  if s.keep >= s.exp then return end
  local life = retain + math.max((1000), math.floor(retain / 8))
  s.keep = s.now + life
  s.keeps = life
end
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
  if s.kind ~= ('0') then slot_save_truth(s, us, retain, set) end
  slot_touch_index(s, us, retain)
  if changed then s.ver = s.ver + 1 end
  if changed or s.retold then s.exp = s.now + retain end
  if not s.known then s.grave = s.now + (30000) end
  slot_keep_keys(s, retain)
  slot_write_entries(s)
  if not s.known or s.verified then
    set[#set + 1] = 'r'
    set[#set + 1] = s.run
  end
  redis.call('HSET', s.k.hash, 's', slot_pack_state(s), unpack(set))
  if #unset > 0 then redis.call('HDEL', s.k.hash, unpack(unset)) end
  if changed and s.ver % (16) == 0 then trim_attempts(s.k.due, s.now) end
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
local function slot_reply(s, us, reply)
  if s.k.index then return reply end
  local told = { reply, int(us), s.planned and int(s.planned) or '', #s.entries > 0 and '1' or '0' }
  for _, note in ipairs(s.pooled) do
    for _, value in ipairs(note) do told[#told + 1] = value end
  end
  return told
end
local function full_end(s)
  s.marked = s.marked or s.full > 0
  s.full, s.probeat, s.pause, s.probelease = 0, 0, 0, 0
  s.probe = ''
end
local function full_release(s)
  s.rel = s.rel + 1
  full_end(s)
end
local function run_stands(epoch)
  if not key_here(epoch) then return true end
  return string.match(redis.call('GET', epoch) or '', '^%w+|%w+|(%w+)|') == RUN
end
local now, us = clock(ARGV[1])
local retain, id = tonumber(ARGV[5]), ARGV[9]
local looked = { known = ARGV[10] == '1', born = tonumber(ARGV[11]), at = tonumber(ARGV[12]),
  open = tonumber(ARGV[13]), adm = tonumber(ARGV[14]), ref = tonumber(ARGV[15]), marked = ARGV[16] == '1' }
local said, value, total, fence = ARGV[17], tonumber(ARGV[18]), tonumber(ARGV[19]), tonumber(ARGV[20])
local hot, refresh = tonumber(ARGV[21]), tonumber(ARGV[22])
local s = slot_load(slot_keys(ARGV[4], KEYS[6]), now, ARGV[7], {})
local v = s.v
local function refused()
  if s.known ~= looked.known or s.known and v.born ~= looked.born then return true end
  if not run_stands(KEYS[9]) or RUN_CHANGED == '1' and looked.at < tonumber(RUN_SINCE) then return true end
  return looked.at <= v.at or fence ~= 0 and fence < v.fence
end
local function cancelled()
  local units, counted = 0, {}
  for _, c in ipairs(s.cancels) do
    local h = c.kind == ('c') and c.lease > now and not counted[c.hold] and slot_hold(s, c.hold)
    if h and hold_is_booked(h) then
      counted[c.hold] = true
      units = units + h.units
    end
  end
  return units
end
local function available()
  if truth_counts(s) then return v.cap - s.conf - s.held, true end
  local capacity = slot_capacity(s, tonumber(ARGV[8]))
  return capacity - s.conf - s.held, capacity ~= (-1)
end
local function take_value()
  v.failed = ''
  local again = false
  if s.kind == ('1') then
    v.total = value
  else
    local admitted, refunded = s.adm - looked.adm, s.ref - looked.ref
    v.cap = value - (looked.open + admitted - refunded) - cancelled() + s.conf + s.held
    v.total, s.run, s.verified = total, RUN, true
    again = looked.open > 0 or admitted > 0
  end
  local left = available()
  if looked.marked and s.full > 0 and left >= s.full then full_release(s) end
  return again
end
local function plan(again)
  local at
  if again or v.moved > looked.at then
    at = now + hot
  elseif us - v.moved <= math.max((3600000), 10 * refresh) * 1000 then
    at = now + refresh
  end
  if v.asked >= math.floor(looked.at / 1000) then at = now end -- also in the same millisecond
  local first = redis.call('ZRANGEBYSCORE', s.k.due, '(' .. int(now), '(' .. int((3000000000000000)), 'WITHSCORES', 'LIMIT', 0, 1)
  if first[2] then at = math.min(at or math.huge, tonumber(first[2])) end
  v.due, s.plan = at or 0, true
end
local function apply()
  v.at, v.checked, v.fence = looked.at, math.floor(looked.at / 1000), math.max(v.fence, fence)
  s.announced, s.retold = true, true
  truth_pace(s, hot, refresh)
  if said == 'missing' then
    v.cap, v.total, v.failed, v.checked, v.due, s.plan = nil, (-1), '', 0, 0, true
    return false
  end
  local again = false
  if said == 'value' then
    again = take_value()
  else
    v.failed = RUN
  end
  plan(again)
  return again
end
local function reply(applied, known, before, after, again)
  local holder = string.match(redis.call('GET', KEYS[7]) or '', '^(.*)|%d+$')
  if holder == id then redis.call('DEL', KEYS[7]) end
  return slot_reply(s, us, { applied and '1' or '0', known and '1' or '0', int(before), int(after), again and '1' or '0' })
end
if refused() then return reply(false, false, 0, 0, false) end
finish(KEYS[8], '', now)
if said == 'missing' and not s.known then
  slot_plan(s, 0, retain)
  return reply(true, false, 0, 0, false)
end
local before, known = available()
local again = apply()
if said == 'missing' then known = false end -- there is nothing to compare
local after, counted = available()
slot_save(s, us, retain)
return reply(true, known, known and before or 0, counted and after or 0, again)
