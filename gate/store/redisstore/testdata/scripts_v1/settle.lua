#!lua
local function clock(ahead)
  local t = redis.call('TIME')
  local us = t[1] * 1000000 + t[2] + ahead * 1000
  return math.floor(us / 1000), us
end
local function settle_usual()
  local _, usual, _, ahead, id, hold_field, note_field, subject_field, subject, taken, units, retain, keyed, key, owned, key_ttl, reference, refers =
    cmsgpack.unpack_limit(ARGV[1], 17, 0)
  if not usual then return end
  local now = clock(ahead)
  local call, format = redis.call, string.format
  local slot = call('HMGET', KEYS[1], 's', hold_field, note_field, subject_field)
  local state, hold = slot[1], slot[2]
  if not state or not hold or slot[3] or subject ~= '' and slot[4] ~= '0|' .. id .. '|'
    or #state ~= (146) or string.find(state, '1|', 1, true) ~= 1 then return end
  local begins = 'held|' .. key .. '|'
  local rest = string.find(hold, begins, 1, true) == 1 and string.match(hold, ('^%d+|0|:%d+:%d+()|'), #begins + 1)
  if not rest or string.find(hold, '|' .. units .. '|' .. subject .. '|', rest, true) ~= rest then return end
  local exp, conf, held, adm, ver, first, keyed_till, quiet, ref, rel, qw, idx, keep, grave, own, opens, closed, odd =
    struct.unpack(('<dddddddddddddddddd'), state, 3)
  local remembered = now + retain
  if odd == 1 or exp <= now or qw > now or keep < remembered or now - idx >= (3600000) then return end
  local record, leases, expires, waits, at
  local key_till = now + key_ttl
  if keyed then
    record = call('GET', KEYS[7]) or ''
    leases, expires, waits, at = string.match(record, ('^1|running(|%d+|)(%d+)|(%d+)()'))
    if not at or string.find(record, owned, at, true) ~= at or #record ~= at + #owned - 1 then return end
    expires = tonumber(expires)
    if expires <= now or expires > key_till or waits ~= '0' and tonumber(waits) > now then return end
  end
  if quiet <= now then
    if call('PTTL', KEYS[5]) ~= (-2) then return end
    quiet = now + (1000)
  end
  local stamp = format('%d', now)
  ver = ver + 1
  call('ZADD', KEYS[2], ('400') .. stamp, id, ('7000000000000001'), '@' .. id)
  local entry = stamp .. '|' .. id .. '|' .. subject .. '|' .. units .. '|held|confirmed|booked'
  if ver % (16) == 0 then
    call('ZREMRANGEBYSCORE', KEYS[2], ('(7000000000000000'), ('700') .. stamp)
    call('XADD', KEYS[3], 'MAXLEN', '~', ('1000'), '*', 'e', entry)
  else
    call('XADD', KEYS[3], '*', 'e', entry)
  end
  if keyed then keyed_till = math.max(keyed_till, key_till + (30000)) end
  local s = '1|' .. struct.pack(('<dddddddd'), remembered, conf + taken, held - taken, adm, ver, first, keyed_till, quiet)
    .. string.sub(state, (67))
  local h = 'confirmed|' .. key .. '|0|0|' .. string.sub(hold, rest)
  if subject ~= '' then
    call('HSET', KEYS[1], 's', s, hold_field, h, subject_field, '1||' .. id)
  else
    call('HSET', KEYS[1], 's', s, hold_field, h)
  end
  if reference then
    call('HSET', KEYS[1], note_field, '0||' .. reference)
    call('SET', KEYS[12], refers, 'PX', format('%d', retain))
  end
  if keyed then
    call('SET', KEYS[7], '1|done' .. leases .. format('%d|', key_till) .. waits .. owned .. ARGV[2], 'PX', key_ttl)
  end
  return '1|confirmed|0|0|0'
end
local settled = settle_usual()
if settled then return settled end
local function int(n)
  return string.format('%d', n)
end
local function check_schema(v, key)
  if v and not (tonumber(v) and tonumber(v) <= (1)) then
    error({ err = 'SCHEMA ' .. key .. ' was written in version ' .. v ..
      ' of the stored form, this gate reads up to ' .. (1) .. '; update this gate' })
  end
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
local function finished(now, first, second)
  local found = redis.call('MGET', first, second)
  for i = 1, 2 do
    if found[i] then
      local state, expires, subject = string.match(found[i], '^(%a*)|(%d+)|?(.*)$')
      if state and tonumber(expires) > now then return state, subject end
    end
  end
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
local function hold_attempt(h, id)
  for i, a in ipairs(h.attempts) do
    if a.id == id then return i end
  end
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
local function truth_failed(s) return s.kind ~= ('0') and s.v.failed == RUN end
local function truth_due(s, at)
  local v = s.v
  if v.due == 0 or at < v.due or v.due < s.now - (600000) then
    v.due, s.retold, s.plan = at, true, true
  end
end
local function truth_ask(s)
  if s.kind == ('0') or not s.known then return end
  s.v.asked, s.retold = s.now, true
  truth_due(s, s.now)
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
local function cancel_of(s, id)
  for i, c in ipairs(s.cancels) do
    if c.id == id then return c, i end
  end
end
local function key_here(key)
  if key ~= KEYS[1] then return key end
end
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
local function slot_finish(s, key, state, subject)
  finish(key, state, s.now, subject)
  s.grave, s.noted = math.max(s.grave, s.now + (30000)), true
end
local function slot_finished(s, first, second)
  if s.known and s.grave <= s.now then return nil end
  return finished(s.now, first, second)
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
local function slot_doubtful(s) return slot_is_dirty(s) or truth_failed(s) end
local function slot_over(s, configured)
  if truth_counts(s) then return math.max(0, s.conf + s.held - s.v.cap) end
  local capacity = slot_capacity(s, configured)
  if capacity == (-1) then return 0 end
  return math.max(0, s.conf + s.held - capacity)
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
local function slot_subject_count(s, h, from)
  local booked, was = hold_is_booked(h), from == 'confirmed' or from == 'pending'
  if h.subject == '' or booked == was then return end
  local subject = slot_subject(s, h.subject)
  local ids = subject.ids
  subject.booked = math.max(0, subject.booked + (booked and 1 or -1))
  subject.changed = true
  if booked then
    if #ids < (64) then ids[#ids + 1] = h.id end
    return
  end
  for i, id in ipairs(ids) do
    if id == h.id then return table.remove(ids, i) end
  end
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
local function pool_tell(s, id, subject, units, ttl)
  s.pooled[#s.pooled + 1] = { id, subject, int(units), int(ttl) }
end
local function pool_note(d, s, h)
  if d.max_per_subject == 0 or h.subject == '' then return end
  if hold_is_finished(h) then
    if not d.pool_subject then return pool_tell(s, h.id, h.subject, 0, (30000)) end
    redis.call('HDEL', d.pool_subject, h.id)
    return
  end
  local lapses = not d.keep_unknown
  if h.state == 'pending' then lapses = d.truth == ('2') end
  local expires = lapses and h.expires > (1) and h.expires or s.now + d.retain
  if not d.pool_subject then return pool_tell(s, h.id, h.subject, h.units, math.max(1, expires - s.now)) end
  redis.call('HSET', d.pool_subject, h.id, int(h.units) .. ':' .. int(expires))
  redis.call('PEXPIRE', d.pool_subject, int(d.retain))
end
local function slot_strays(s)
  if not s.strays then
    local till, list = string.match(slot_get(s, 'k') or '', '^(%d+)|(.*)$')
    s.strays = {}
    if till and tonumber(till) > s.now then
      for key in string.gmatch(list, '[^,]+') do s.strays[#s.strays + 1] = key end
    end
  end
  return s.strays
end
local function slot_stray(s, key)
  if not s.known or key == '' or s.keyed <= s.now then return end
  local strays = slot_strays(s)
  for _, other in ipairs(strays) do
    if other == key or other == '*' then return end
  end
  strays[#strays + 1] = #strays < (64) and key or '*'
  s.strayed = true
end
local function strays_pack(s) return int(s.keyed) .. '|' .. table.concat(s.strays, ',') end
local function slot_keyed(s, key, ttl)
  if key ~= '' then s.keyed = math.max(s.keyed, s.now + ttl + (30000)) end
end
local function slot_keep(s, h)
  h.changed = true
  s.holds[h.id] = h
end
local function slot_log(s, h, from, cause)
  s.entries[#s.entries + 1] = table.concat({ int(s.now), h.id, h.subject, int(h.units), from, h.state, cause }, '|')
end
local COUNTER = { held = 'held', pending = 'held', unknown = 'held', confirmed = 'conf' }
local function slot_note(s, id)
  local note = s.notes[id]
  if not note then
    local doubted, booked, reference = string.match(slot_get(s, 'f:' .. id) or '', '^([01])|(%d*)|(.*)$')
    note = { doubted = doubted == '1', booked = tonumber(booked), reference = reference or '' }
    s.notes[id] = note
  end
  return note
end
local function slot_book(s, h, from)
  if from == 'pending' then
    local booked = redis.call('ZSCORE', s.k.due, '+' .. h.id)
    h.booked = booked and tonumber(booked) - (4000000000000000) or s.now
    s.unlisted = s.unlisted or {}
    s.unlisted[#s.unlisted + 1] = '+' .. h.id
  elseif #h.attempts > 0 then
    local note = slot_note(s, h.id)
    note.booked, note.changed = s.now, true
    h.booked = math.max(s.now, h.lapses or 0)
  else
    h.booked = s.now
  end
  if s.v then
    local units = (h.state == 'pending' and h.units or 0) - (from == 'pending' and h.units or 0)
    if units ~= 0 then s.v.pending, s.retold = math.max(0, s.v.pending + units), true end
  end
end
local function slot_move(s, h, state, cause, still)
  local from, taken = h.state, s.conf + s.held
  if COUNTER[from] then s[COUNTER[from]] = s[COUNTER[from]] - h.units end
  if COUNTER[state] then s[COUNTER[state]] = s[COUNTER[state]] + h.units end
  h.state = state
  if state == 'confirmed' then h.expires = 0 end
  if from == 'pending' or hold_is_booked(h) then slot_book(s, h, from) end
  if still and s.kind == ('2') and s.v.cap then
    s.v.cap, s.retold = s.v.cap + s.conf + s.held - taken, true
  end
  if hold_is_finished(h) and h.key ~= s.unkept then slot_stray(s, h.key) end
  slot_subject_count(s, h, from)
  slot_log(s, h, from, cause)
  slot_keep(s, h)
end
local function slot_doubt(s, id)
  if not slot_hold(s, id) then return end
  local note = slot_note(s, id)
  note.doubted, note.changed = true, true
end
local function slot_doubted(s, h)
  if slot_note(s, h.id).doubted then return true end
  for _, c in ipairs(s.cancels) do
    if c.kind == ('c') and c.hold == h.id and c.lease <= s.now then return true end
  end
  return false
end
local function slot_new_hold(s, id, units, subject, text, fingerprint, scope, key)
  return {
    id = id, state = '', units = units, subject = subject, taken = s.now, expires = 0,
    adoptions = 0, attempts = {}, fingerprint = fingerprint, scope = scope, key = key, text = text,
  }
end
local function slot_end_attempt(s, h, i)
  local id = h.attempts[i].id
  table.remove(h.attempts, i)
  if hold_is_booked(h) and #h.attempts == 0 then h.booked = slot_note(s, h.id).booked or s.now end
  if id ~= h.id then s.attempts[id] = false end
  slot_keep(s, h)
end
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
    return redis.call('XADD', outbox, 'NOMKSTREAM', 'MAXLEN', '~', ('100000'), '*',
      'l', id, 'n', name, 't', t, 'h', h, 's', s, 'u', u, 'f', f, 'o', o, 'c', c)
  end
  return redis.call('XADD', outbox, 'NOMKSTREAM', 'MAXLEN', '~', ('100000'), '*',
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
  local length = s.k.outbox and ('1000') or ('20000')
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
  if changed and s.ver % (16) == 0 then
    redis.call('ZREMRANGEBYSCORE', s.k.due, ('(7000000000000000'), int((7000000000000000) + s.now))
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
local function full_next_probe(s, pause)
  s.probe = ''
  s.probelease = 0
  s.probeat = s.now + pause
  s.marked = true
end
local function full_mark(s, units, seen, is_probe)
  if seen ~= s.rel then return end
  if s.full == 0 then
    s.full = units
    s.pause = (1000)
    full_next_probe(s, s.pause)
    return
  end
  s.full = math.min(s.full, units)
  s.marked = true
  if is_probe then
    s.pause = math.min(2 * s.pause, (30000))
    full_next_probe(s, s.pause)
  end
end
local function full_probed(s, outcome, ends)
  if outcome == 'unknown' then
    full_next_probe(s, s.pause)
  elseif outcome == 'never_sent' then
    full_next_probe(s, (1000))
  elseif ends then
    full_end(s)
  else
    full_next_probe(s, 0)
  end
end
local function key_load(key, now)
  local packed = redis.call('GET', key)
  local rec = { key = key, now = now, state = 'none', owner = false, hold = '', scope = '', lease = 0, expires = 0, wait = 0 }
  if not packed then return rec end
  check_schema(string.match(packed, '^[^|]*'), key)
  local state, lease, expires, wait, fingerprint, scope, owner, hold, by, answer = string.match(packed, ('^%d+|(%a+)|(%d+)|(%d+)|(%d+)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|(.*)$'))
  if not state then error({ err = 'SCHEMA ' .. key .. ' has a record that no gate wrote' }) end
  if tonumber(expires) <= now then return rec end
  rec.state, rec.owner, rec.hold, rec.fingerprint, rec.scope = state, owner, hold, fingerprint, scope
  rec.lease, rec.expires, rec.wait, rec.by, rec.answer = tonumber(lease), tonumber(expires), tonumber(wait), by, answer
  rec.overdue = state == 'running' and rec.lease <= now
  return rec
end
local function key_write(rec, ttl, state, owner, hold, fingerprint, scope, lease, wait, by, answer)
  local expires = math.max(rec.expires, rec.now + ttl)
  redis.call('SET', rec.key, table.concat({ (1), state, int(lease), int(expires), int(wait), fingerprint, scope,
    owner, hold, by, answer }, '|'), 'PX', int(expires - rec.now))
end
local function key_rewrite(rec, ttl)
  key_write(rec, ttl, rec.state, rec.owner, rec.hold, rec.fingerprint, rec.scope, rec.lease, rec.wait, rec.by, rec.answer)
end
local function key_complete(rec, ttl, answer)
  rec.state, rec.answer = 'done', answer
  key_rewrite(rec, ttl)
end
local function key_unknown(rec, ttl)
  rec.state = 'unknown'
  key_rewrite(rec, ttl)
end
local function key_tell(rec, channel)
  if rec.wait > rec.now then redis.call('PUBLISH', channel, rec.key) end
end
local function key_leave_answer(rec, key, answer, channel)
  if rec.wait <= rec.now then return end
  if answer ~= '' then
    redis.call('SET', key, int(rec.wait) .. '|' .. rec.scope .. '|' .. answer, 'PX', int(rec.wait - rec.now))
  end
  key_tell(rec, channel)
end
local function settled_state(d, s, h, others)
  local outcome = d.outcome
  local booked = d.pending_ttl > 0 and h.state ~= 'confirmed' and 'pending' or 'confirmed'
  if h.state == 'pending' or h.expires == (1) then return h.state end
  if outcome == 'duplicate' then
    local others_booked = h.subject == '' and 0 or slot_subject(s, h.subject).booked
    if h.state == 'confirmed' then others_booked = others_booked - 1 end
    if others_booked == 0 then return booked end -- H1
  end
  if outcome == 'booked' or outcome == 'done' then return booked end
  if not hold_is_open(h) then return h.state end
  return (others or slot_doubted(s, h)) and 'unknown' or 'released' -- H2, H8
end
local function settle_mark(d, s, h, released)
  local is_probe = d.probe and s.probe == d.id
  if d.outcome == 'sold_out' then
    full_mark(s, h.units, d.seen, is_probe)
  elseif is_probe then
    full_probed(s, d.outcome, hold_is_booked(h) and not slot_doubtful(s) and slot_capacity(s, d.capacity) ~= (-1))
  elseif released and d.outcome ~= 'busy' and d.outcome ~= 'never_sent' then
    full_release(s)
  end
end
local function settle_reference(d, s, h)
  local named = d.outcome == 'booked' or d.outcome == 'duplicate' or d.outcome == 'done'
  if d.reference == '' or not named or not hold_is_booked(h) then return end
  local note = slot_note(s, h.id)
  note.reference, note.changed = d.reference, true
  if d.reference_key then
    redis.call('SET', d.reference_key, h.id .. '|' .. s.k.name, 'PX', int(d.retain))
  end
end
local function settle_unknown(d, s, h, i)
  h.attempts[i].lease = 0
  if h.state == 'held' then
    slot_move(s, h, 'unknown', d.outcome)
  else
    slot_keep(s, h)
  end
end
local function settle_answered(d, r, s, h, i)
  local before = h.state
  if not d.keep and h.adoptions == 0 then s.unkept = h.key end -- the key goes, too
  slot_end_attempt(s, h, i)
  local after = settled_state(d, s, h, #h.attempts > 0)
  r.late = hold_is_finished(h) and after ~= before
  if hold_is_open(h) then h.lapses = h.expires end
  if after == 'pending' and after ~= before then
    h.expires = s.now + d.pending_ttl
  elseif after == 'released' and after ~= before then
    h.expires = s.now + (30000)
    s.ref = s.ref + h.units
  end
  if after ~= before then slot_move(s, h, after, d.outcome, r.late) end
  settle_reference(d, s, h)
  if r.late then r.oversold = math.min(h.units, slot_over(s, d.capacity)) end
  settle_mark(d, s, h, after == 'released' and before ~= after)
  if hold_is_finished(h) and #h.attempts == 0 then
    slot_finish(s, d.hold_grave, h.state, h.subject)
    if d.id ~= h.id then slot_finish(s, d.attempt_grave, h.state) end
  elseif d.id ~= h.id then
    slot_finish(s, d.attempt_grave, h.state)
  end
end
local function settle_unseen(d, r, s)
  r.applied, r.unseen = true, true
  if d.outcome == 'unknown' then return end
  slot_keyed(s, d.key, d.key_ttl)
  local h = slot_new_hold(s, d.hold, d.units, d.subject, d.text, d.fingerprint, d.scope, d.key)
  local after = d.outcome == 'duplicate' and 'released' or settled_state(d, s, h, false)
  local booked = after == 'confirmed' or after == 'pending'
  if booked then
    s.adm = s.adm + h.units
    h.expires = s.now + d.pending_ttl
    slot_move(s, h, after, d.outcome)
    settle_reference(d, s, h)
    r.state, r.oversold = after, math.min(h.units, slot_over(s, d.capacity))
    s.freed = true -- who repeats that it is sold out does not know of this one
    pool_note(d, s, h)
  else
    slot_finish(s, d.hold_grave, '')
    if d.keep then
      slot_stray(s, d.key)
      s.freed = true -- who repeats that it is sold out does not know of this key
    end
  end
  if d.id ~= d.hold or not booked then slot_finish(s, d.attempt_grave, r.state) end
  if booked and not s.k.index then slot_finish(s, d.attempt_grave, ('unseen')) end
end
local function settle_again(d, r, s, h)
  if s.k.index then return end
  r.unseen = slot_finished(s, d.attempt_grave, d.attempt_grave) == ('unseen')
  if h then
    pool_note(d, s, h)
  elseif d.max_per_subject > 0 and d.subject ~= '' then
    pool_tell(s, d.hold, d.subject, 0, (30000))
  end
end
local function settle_slot(d, r, s)
  local h = slot_hold(s, d.hold)
  local i = h and hold_attempt(h, d.id)
  if not h then
    local state = slot_finished(s, d.hold_grave, d.attempt_grave)
    if not state then return settle_unseen(d, r, s) end
    r.state = state
    return settle_again(d, r, s)
  end
  r.state = h.state
  if not i or d.outcome == 'unknown' and h.attempts[i].lease == 0 then return settle_again(d, r, s, h) end
  r.applied = true
  s.freed = true
  slot_keyed(s, d.key, d.key_ttl)
  s.ended = d.id
  if d.outcome == 'unknown' then
    settle_unknown(d, s, h, i)
    settle_mark(d, s, h, false)
  else
    settle_answered(d, r, s, h, i)
  end
  r.state = h.state
  pool_note(d, s, h)
end
local function settle_cancel(d, r, s)
  local h = d.hold ~= '' and slot_hold(s, d.hold)
  local running, place = cancel_of(s, d.id)
  local function late()
    return not running or running.lease <= s.now or slot_doubted(s, h)
  end
  local function cancel()
    if not hold_is_booked(h) then return end
    if #h.attempts > 0 or running and running.open then
      h.expires = s.now + d.hold_ttl
      slot_doubt(s, h.id)
      slot_move(s, h, 'unknown', 'cancel')
      return
    end
    local still = late()
    r.look = still and s.kind == ('2')
    h.expires = s.now + (30000)
    slot_move(s, h, 'released', 'cancel', still)
    full_release(s)
    slot_finish(s, d.hold_grave, 'released', h.subject)
    s.announced = true
  end
  local function confirm()
    local expired = h.state == 'lapsed' or h.state == 'unknown' and h.expires == (1)
    if h.state ~= 'pending' and not expired then return end
    r.late = h.state == 'lapsed'
    slot_move(s, h, 'confirmed', 'confirm', true)
    if r.late then r.oversold = math.min(h.units, slot_over(s, d.capacity)) end
  end
  r.state = h and h.state or d.hold ~= '' and slot_finished(s, d.hold_grave, d.hold_grave) or ''
  if slot_finished(s, d.attempt_grave, d.attempt_grave) then return settle_again(d, r, s, h) end
  r.applied = true
  if s.known then slot_finish(s, d.attempt_grave, '') end
  local unseen = d.outcome == 'done' and not d.confirms and d.hold ~= '' and r.state == ''
  if unseen then slot_finish(s, d.hold_grave, 'released') end
  if running then
    if running.kind == ('c') and running.lease <= s.now then slot_doubt(s, running.hold) end
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
local function settle_key(d, r, rec, answer_key, gated, apart)
  local owned = rec.owner == d.id and rec.state ~= 'done'
  if not gated then
    r.applied = owned or rec.owner ~= d.id and not finished(rec.now, d.attempt_grave, d.attempt_grave)
    if d.outcome == 'unknown' and rec.state == 'unknown' then r.applied = false end
  end
  local hold = d.books and d.hold or ''
  local open = rec.fingerprint == d.fingerprint and (rec.state == 'running' or rec.state == 'unknown')
  local made = open and rec.hold == hold and rec.scope == d.scope
    and (d.outcome == 'booked' or d.outcome == 'duplicate' or d.outcome == 'done')
  local left = apart and (owned and rec.state == 'running'
    or made and (r.state == 'confirmed' or r.state == 'pending')
    or r.unseen and not finished(rec.now, d.attempt_grave, d.attempt_grave))
  if not r.applied and not left then return end
  local unknown = d.outcome == 'unknown' or d.books and (r.state == 'unknown' or r.state == 'held')
  local unanswered = open and (rec.state == 'unknown' or rec.overdue)
  if owned then
    key_leave_answer(rec, answer_key, d.answer, d.channel)
    if unknown then
      if rec.state ~= 'unknown' then key_unknown(rec, d.key_ttl) end
    elseif d.keep then
      key_complete(rec, d.key_ttl, d.answer)
    else
      redis.call('DEL', rec.key)
    end
  elseif d.keep and not unknown and (rec.state == 'none' or made or r.unseen and unanswered) then
    key_write(rec, d.key_ttl, 'done', d.id, hold, d.fingerprint, d.scope, 0, 0, '', d.answer)
    key_tell(rec, d.channel)
  end
  local stays = apart and owned and d.keep
  if not unknown and (apart and not stays or not gated) then finish(d.attempt_grave, '', rec.now) end
end
local _, _, ahead, id, hold_field, note_field, subject_field, subject, units, _, retain, keyed, key, owned, key_ttl, reference, _,
  outcome, gated, hold, name, capacity, hold_ttl, max_per_subject, keep_unknown, seen, probe, text, keep, action, truth,
  pending_ttl, channel = cmsgpack.unpack(ARGV[1])
local now, us = clock(ahead)
local fingerprint, scope = string.match(owned, '^|([^|]*)|([^|]*)|')
local d = {
  id = id, outcome = outcome, hold = hold, units = units, capacity = capacity, hold_ttl = hold_ttl, retain = retain,
  max_per_subject = max_per_subject, keep_unknown = keep_unknown, seen = seen, probe = probe, subject = subject, text = text,
  scope = scope, fingerprint = fingerprint, attempt_grave = KEYS[6], hold_grave = hold == id and KEYS[6] or KEYS[10],
  pool_subject = key_here(KEYS[11]), reference_key = key_here(KEYS[12]),
  key_ttl = tonumber(key_ttl), keep = keep, answer = ARGV[2], channel = channel,
  books = action == 0, confirms = action == 2, truth = truth, pending_ttl = pending_ttl, reference = reference or '', key = key,
}
local r = { applied = false, state = '', late = false, oversold = 0, look = false }
local s
if gated then
  s = slot_load(slot_keys(name, KEYS[9], channel), now, d.truth, { hold_field, note_field, subject_field })
  if d.books then
    settle_slot(d, r, s)
  else
    settle_cancel(d, r, s)
  end
  slot_save(s, us, d.retain)
end
if keyed then settle_key(d, r, key_load(KEYS[7], now), KEYS[8], gated) end
local reply = table.concat({ r.applied and '1' or '0', r.state, r.late and '1' or '0', int(r.oversold), r.look and '1' or '0' }, '|')
if s and not s.k.index then reply = reply .. (r.unseen and '|1' or '|0') end
return gated and slot_reply(s, us, reply) or reply
