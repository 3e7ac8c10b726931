#!lua
local function clock(ahead)
  local t = redis.call('TIME')
  local us = t[1] * 1000000 + t[2] + ahead * 1000
  return math.floor(us / 1000), us
end
local function usual_replay(record, asked, now, rel, left)
  local _, proof, bare = cmsgpack.unpack_limit(ARGV[1], 2, asked)
  local expires, at = string.match(record, ('^1|done|%d+|(%d+)|%d+()'))
  local same = '|' .. proof .. '|'
  if not at or string.find(record, same, at, true) ~= at or not bare and string.sub(proof, -1) == '|' or tonumber(expires) <= now then
    return
  end
  local answer = string.match(record, '^[^|]*|[^|]*|[^|]*|()', at + #same)
  return string.format('replay||0|0|%d||1|0|0|%d|||', rel, math.max(0, left)) .. string.sub(record, answer)
end
local function decide_usual(look, charge)
  if not look and string.byte(ARGV[1], 3) ~= (192) then return nil, true end
  local asked, usual, resent, limits, ahead, id, hold_field, adopted_field, subject_field, taken, capacity, opens, keyed, keep_unknown,
    repeats = cmsgpack.unpack_limit(ARGV[1], 14, 0)
  if not usual or resent then return end
  local now, us = clock(ahead)
  local call, format = redis.call, string.format
  local slot = call('HMGET', KEYS[1], 's', 'r', hold_field, adopted_field, subject_field)
  local state, run = slot[1], slot[2]
  if not state or slot[3] or slot[4] or #state ~= (146) or string.find(state, '1|', 1, true) ~= 1
    or not run or string.find(ARGV[2], run .. '|', 1, true) ~= 1 then return end
  local exp, conf, held, adm, ver, first, keyed_till, quiet, ref, rel, qw, idx, keep, grave, own, own_opens, closed, odd =
    struct.unpack(('<dddddddddddddddddd'), state, 3)
  if own ~= (-2) then capacity = own end
  if own_opens ~= (-2) then opens = own_opens end
  if odd == 1 or closed == 1 or opens > now or taken > capacity or exp <= now or first ~= 0 and first <= now then return end
  if grave > now then
    local graves = call('MGET', KEYS[6], KEYS[7])
    if graves[1] or graves[2] then return end
  end
  local left = capacity - conf - held
  if keyed and (slot[5] or taken > left) then
    local record = call('GET', KEYS[8])
    if record then return usual_replay(record, asked, now, rel, left) end
  end
  if slot[5] then return end
  local by_subject, by_client, of_slot
  if look then
    by_subject, by_client = look(KEYS[12], limits, 1, us), look(KEYS[13], limits, 3, us)
    if by_subject == false or by_client == false then return end
  end
  if taken > left then
    if repeats > 0 and left <= 0 and call('HLEN', KEYS[1]) <= (3) * (512) then return end
    local lapses = 0
    if not keep_unknown and held > 0 and conf + taken <= capacity then
      local next = call('ZRANGEBYSCORE', KEYS[2], format('%d', now), ('(3000000000000000'), 'WITHSCORES', 'LIMIT', 0, 1)
      if next[2] then lapses = math.max(1, next[2] - now) end
    end
    if look then
      return format('sold_out||0|0|%d||0|%d|0|%d||', rel, lapses, math.max(0, left)) .. charge(limits, us, id, by_subject, by_client) .. '|'
    elseif rel == 0 and lapses == 0 and left <= 0 then
      return 'sold_out||0|0|0||0|0|0|0|||'
    end
    return format('sold_out||0|0|%d||0|%d|0|%d|||', rel, lapses, math.max(0, left))
  end
  if look then of_slot = look(KEYS[11], limits, 5, us) end
  if of_slot == false then return end
  local _, proof, _, subject, units, key, ttl, text, room, retain, lease, hold_ttl = cmsgpack.unpack_limit(ARGV[1], 11, asked)
  local stamp, seen = format('%d', now), rel == 0 and '0' or format('%d', rel)
  if room > 0 and call('ZCOUNT', KEYS[2], '(' .. ('700') .. stamp, '+inf') >= room then return end
  local remembered = now + retain
  if adm == 0 or keep < remembered or now - idx >= (3600000) then return end
  if quiet <= now then
    if call('PTTL', KEYS[5]) ~= (-2) then return end
    quiet = now + (1000)
  end
  local expires = now + hold_ttl
  local lapses, awaited = format('%d', expires), format('%d', now + lease)
  ver = ver + 1
  if first == 0 or expires < first then first = expires end
  if keyed then
    local key_till = now + ttl
    local record = '1|running|' .. awaited .. '|' .. format('%d', key_till) .. '|0|' .. proof .. '|' .. id .. '|' .. id .. '||'
    local standing = call('SET', KEYS[8], record, 'NX', 'GET', 'PX', ttl)
    if standing then return usual_replay(standing, asked, now, rel, left) end
    keyed_till = math.max(keyed_till, key_till + (30000))
  end
  call('ZADD', KEYS[2], lapses, id, ('700') .. awaited, '@' .. id)
  local entry = stamp .. '|' .. id .. '|' .. subject .. '|' .. units .. '||held|decide'
  if ver % (16) == 0 then
    call('ZREMRANGEBYSCORE', KEYS[2], ('(7000000000000000'), ('700') .. stamp)
    call('XADD', KEYS[3], 'MAXLEN', '~', ('1000'), '*', 'e', entry)
  else
    call('XADD', KEYS[3], '*', 'e', entry)
  end
  local s = '1|' .. struct.pack(('<dddddddd'), remembered, conf, held + taken, adm + taken, ver, first, keyed_till, quiet)
    .. string.sub(state, (67))
  local h = 'held|' .. key .. '|' .. lapses .. '|0|:' .. awaited .. ':' .. seen .. '|' .. units
    .. '|' .. subject .. '|' .. stamp .. '|' .. proof .. '|' .. text
  if subject ~= '' then
    call('HSET', KEYS[1], 's', s, hold_field, h, subject_field, '0|' .. id .. '|')
  else
    call('HSET', KEYS[1], 's', s, hold_field, h)
  end
  local limited = look and charge(limits, us, id, by_subject, by_client, of_slot) or ''
  return 'admitted|' .. id .. '|0|0|' .. seen .. '||0|0|0|' .. format('%d', left - taken) .. '||' .. limited .. '|'
end
local decided, has_limits = decide_usual()
if decided then return decided end
local function usual_limit(key, limits, at, us)
  local interval = limits[at]
  if interval == 0 then return nil end
  local stored = redis.call('GET', key)
  local tat = us
  if stored then tat = math.max(us, tonumber(string.match(stored, '^(%d+)|') or us)) end
  return tat + interval - interval * limits[at + 1] <= us and tat
end
local function usual_charge(limits, us, id, by_subject, by_client, of_slot)
  local text = ''
  for i, tat in pairs({ by_subject, by_client, of_slot }) do
    local name, key = 'subject', KEYS[12]
    if i == 2 then name, key = 'client', KEYS[13] elseif i == 3 then name, key = 'slot', KEYS[11] end
    local interval, burst = limits[2 * i - 1], limits[2 * i]
    tat = tat + interval
    local remaining = math.max(0, math.floor((interval * burst - (tat - us)) / interval))
    local reset = string.format('%d', math.ceil((tat - us) / 1000))
    redis.call('SET', key, string.format('%d|', tat) .. id, 'PX', reset)
    text = text .. (text == '' and '' or ',') .. name .. string.format(':%d:', remaining) .. reset
  end
  return text
end
if has_limits then
  decided = decide_usual(usual_limit, usual_charge)
  if decided then return decided end
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
local function hold_running(h, now)
  for _, a in ipairs(h.attempts) do
    if a.lease > now then return a end
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
local function truth_wait(s, hold_ttl)
  if s.kind ~= ('2') or RUN_CHANGED == '0' or truth_counts(s) then return 0 end
  return math.max(0, math.ceil(RUN_SINCE / 1000) + hold_ttl - s.now)
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
local function cancel_running(s, subject)
  if subject == '' then return nil end
  for _, c in ipairs(s.cancels) do
    if c.kind == ('c') and c.subject == subject and c.lease > s.now then return c end
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
local function slot_untouched(k)
  return { k = k, rel = 0, entries = {}, pooled = {} }
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
local function slot_prefetch(s, names)
  local missing = {}
  for _, name in ipairs(names) do
    if s.fields[name] == nil then missing[#missing + 1] = name end
  end
  if #missing == 0 then return end
  local got = s.known and redis.call('HMGET', s.k.hash, unpack(missing)) or {}
  for i, name in ipairs(missing) do s.fields[name] = got[i] or false end
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
local function slot_wait(s, wait)
  if s.known and s.now + wait > s.qw then
    s.qw = s.now + wait
    s.waited_for = true
  end
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
local function slot_total(s, configured)
  if s.kind == ('2') then return slot_verified(s) and s.v.total or (-1) end
  return slot_capacity(s, configured)
end
local function slot_doubtful(s) return slot_is_dirty(s) or truth_failed(s) end
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
local function slot_holders(s)
  if not s.known or redis.call('HLEN', s.k.hash) > (3) * (512) then return '' end
  local list = { '1' }
  for _, key in ipairs(slot_strays(s)) do
    if key == '*' then return '' end
    list[#list + 1] = key
  end
  local all = redis.call('HGETALL', s.k.hash)
  for i = 1, #all, 2 do
    local kind = string.sub(all[i], 1, 2)
    if kind == 'u:' then
      list[#list + 1] = string.sub(all[i], 3, 2 + (11))
    elseif kind == 'h:' then
      list[#list + 1] = string.match(all[i + 1], '^%a+|([^|]*)')
    end
  end
  for _, c in ipairs(s.cancels) do list[#list + 1] = string.sub(c.subject, 1, (11)) end
  return table.concat(list)
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
local function slot_start_attempt(s, h, id, lease)
  h.attempts[#h.attempts + 1] = { id = id, lease = s.now + lease, seen = s.rel }
  if id ~= h.id then s.attempts[id] = h.id end
  s.started[#s.started + 1] = { id = id, lease = s.now + lease }
  slot_keep(s, h)
end
local function slot_expire(s, h)
  if s.kind == ('2') then
    h.expires = s.now + (30000)
    slot_move(s, h, 'lapsed', 'lapse', true)
    h.remembered = true
    truth_ask(s)
  else
    h.expires = (1)
    slot_move(s, h, 'unknown', 'lapse')
  end
end
local function slot_lapse(s, keep_unknown)
  if not s.known or s.first == 0 or s.first > s.now then return 0 end
  local due = redis.call('ZRANGEBYSCORE', s.k.due, '-inf', int(s.now), 'LIMIT', 0, 4 * (16))
  local names = {}
  for i, id in ipairs(due) do names[i] = 'h:' .. id end
  slot_prefetch(s, names)
  local lapsed, looked, more = 0, 0, #due == 4 * (16)
  for _, id in ipairs(due) do
    local h = slot_hold(s, id, true)
    if not h or hold_is_finished(h) then
      s.forget = s.forget or {}
      s.forget[#s.forget + 1] = id
    elseif looked < (16) then
      looked = looked + 1
      if h.state == 'pending' then
        slot_expire(s, h)
        if hold_is_finished(h) then lapsed = lapsed + 1 end
      elseif not keep_unknown then
        h.expires = s.now + (30000)
        slot_move(s, h, 'lapsed', 'lapse', true)
        h.remembered = true -- copies of its settlements may follow
        lapsed = lapsed + 1
        s.freed = true
      else
        h.expires = 0
        if h.state ~= 'unknown' then slot_move(s, h, 'unknown', 'lapse') end
        slot_keep(s, h)
      end
    else
      more = true
    end
  end
  if not more then
    local next = redis.call('ZRANGEBYSCORE', s.k.due, '(' .. int(s.now), ('(3000000000000000'), 'WITHSCORES', 'LIMIT', 0, 1)
    s.first, s.noted = tonumber(next[2] or 0), true
  end
  return lapsed
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
local function key_may_replay(scope, asking, bare)
  if scope ~= asking then return false end
  return scope ~= '' or bare
end
local function key_write(rec, ttl, state, owner, hold, fingerprint, scope, lease, wait, by, answer)
  local expires = math.max(rec.expires, rec.now + ttl)
  redis.call('SET', rec.key, table.concat({ (1), state, int(lease), int(expires), int(wait), fingerprint, scope,
    owner, hold, by, answer }, '|'), 'PX', int(expires - rec.now))
end
local function key_rewrite(rec, ttl)
  key_write(rec, ttl, rec.state, rec.owner, rec.hold, rec.fingerprint, rec.scope, rec.lease, rec.wait, rec.by, rec.answer)
end
local function key_claim(rec, id, hold, fingerprint, scope, lease, ttl, by)
  if rec.state ~= 'none' then ttl = lease end
  key_write(rec, math.max(ttl, lease), 'running', id, hold, fingerprint, scope, rec.now + lease, rec.wait, by or '', '')
end
local function key_complete(rec, ttl, answer)
  rec.state, rec.answer = 'done', answer
  key_rewrite(rec, ttl)
end
local function key_wait(rec, wait)
  if wait > 0 and rec.now + wait > rec.wait then
    rec.wait = rec.now + wait
    key_rewrite(rec, 0)
  end
end
local function key_left_answer(key, now)
  local left = redis.call('GET', key)
  if not left then return nil end
  local expires, scope, answer = string.match(left, '^(%d+)|([^|]*)|(.*)$')
  if not expires or tonumber(expires) <= now then return nil end
  return scope, answer
end
local function replay(d, r, rec)
  if key_may_replay(rec.scope, d.scope, d.bare) then
    r.verdict, r.may_replay = 'replay', true
    r.answer = rec.answer
  else
    r.verdict = 'key_done'
  end
end
local function decide_key(d, r, rec)
  if rec.state == 'none' then return false end
  if rec.fingerprint ~= d.fingerprint then
    r.verdict = 'mismatch'
    return true
  end
  if rec.state == 'done' then
    replay(d, r, rec)
    return true
  end
  if rec.state == 'running' and not rec.overdue then
    r.verdict, r.owner, r.retry = 'twin', rec.owner, rec.lease - rec.now
    r.may_replay = key_may_replay(rec.scope, d.scope, d.bare)
    key_wait(rec, d.wait)
    return true
  end
  if not d.retry_unknown or rec.scope ~= d.scope then
    r.verdict = 'outcome_unknown'
    return true
  end
  if d.books then d.under = rec.hold end
  return false
end
local function cancel_busy(d, r, s, subject)
  local running = cancel_running(s, subject)
  if not running then return false end
  r.verdict, r.owner, r.retry = 'subject_busy', running.id, running.lease - s.now
  slot_wait(s, d.wait)
  return true
end
local function adopt(d, r, s, h)
  local closed = h.expires == (1) or slot_doubted(s, h)
  if not closed and cancel_busy(d, r, s, h.subject) then return end
  if closed or h.adoptions >= (16) then
    r.verdict = 'outcome_unknown'
    return
  end
  r.verdict, r.hold, r.adopted = 'admitted', h.id, true
  h.adoptions = h.adoptions + 1
  slot_keyed(s, d.key, math.max(d.key_ttl, d.lease))
  if d.key ~= h.key then slot_stray(s, d.key) end
  h.expires = s.now + d.hold_ttl
  slot_start_attempt(s, h, d.id, d.lease)
  slot_move(s, h, 'held', 'adopt')
  pool_note(d, s, h)
end
local function decide_under(d, r, s)
  local h = slot_hold(s, d.under)
  local attempt = not h and not s.k.index and slot_get(s, 't:' .. d.under)
  if attempt then
    h = slot_hold(s, attempt)
    if d.max_per_subject > 0 and d.subject ~= '' then pool_tell(s, d.under, d.subject, 0, (30000)) end
  end
  if not h or hold_is_finished(h) then
    if not d.pool_subject and d.max_per_subject > 0 and d.subject ~= '' then
      pool_tell(s, d.under, d.subject, 0, (30000))
    end
    return 'gone'
  end
  if hold_is_booked(h) then return 'booked' end
  adopt(d, r, s, h)
  if not r.adopted and not d.pool_subject then pool_note(d, s, h) end
end
local function limit_stand(state, us)
  local limit = state.limit
  local left = limit.interval * limit.burst - (state.tat - us)
  state.remaining = math.max(0, math.floor(left / limit.interval))
  state.reset = math.ceil((state.tat - us) / 1000)
end
local function limit_look(limit, us, id, resent)
  local tat, last = us, ''
  local stored = redis.call('GET', limit.key)
  if stored then
    local text
    text, last = string.match(stored, '^(%d+)|(.*)$')
    tat = math.max(us, tonumber(text or us))
  end
  local state = { limit = limit, tat = tat, passes = true }
  local span = limit.interval * limit.burst
  if resent and last == id then
    state.charged = true
  elseif tat + limit.interval - span > us then
    state.passes = false
    state.retry = math.ceil((tat + limit.interval - span - us) / 1000)
  end
  limit_stand(state, us)
  return state
end
local function limit_charge(state, us, id)
  if state.charged then return end
  state.tat = state.tat + state.limit.interval
  limit_stand(state, us)
  redis.call('SET', state.limit.key, int(state.tat) .. '|' .. id,
    'PX', int(math.max(1, math.ceil((state.tat - us) / 1000))))
end
local function limit_text(state)
  return state.limit.name .. ':' .. int(state.remaining) .. ':' .. int(state.reset)
end
local function pool_units(key, now, but)
  local units, expired = 0, {}
  local entries = redis.call('HGETALL', key)
  for i = 1, #entries, 2 do
    local n, expires = string.match(entries[i + 1], '^(%d+):(%d+)')
    if not n or tonumber(expires) <= now then
      expired[#expired + 1] = entries[i]
    elseif entries[i] ~= but then
      units = units + tonumber(n)
    end
  end
  if #expired > 0 then redis.call('HDEL', key, unpack(expired, 1, math.min(#expired, 1000))) end
  return units
end
local function decide_known_id(d, r, s)
  local cancel = cancel_of(s, d.id)
  if cancel then
    r.verdict, r.hold = 'admitted', cancel.hold
    return true
  end
  local h = slot_hold(s, d.id)
  if not h then
    local adopted = slot_get(s, 't:' .. d.id)
    if not adopted then return false end
    h = slot_hold(s, adopted)
  end
  local i = h and hold_attempt(h, d.id)
  if i and hold_is_open(h) then
    r.verdict, r.hold, r.adopted = 'admitted', h.id, h.id ~= d.id
    r.probe, r.seen = s.probe == d.id, h.attempts[i].seen
  else
    r.verdict = 'gone'
  end
  return true
end
local function decide_subject(d, r, s)
  if d.subject == '' then return false end
  if cancel_busy(d, r, s, d.subject) then return true end
  if not d.one_per_subject then return false end
  local subject = slot_subject(s, d.subject)
  local unanswered
  local holds = subject.booked > 0
  for i = 1, math.min(#subject.holds, (64)) do
    local h = slot_hold(s, subject.holds[i])
    local running = h and hold_running(h, s.now)
    if running then
      r.verdict, r.owner, r.retry = 'subject_busy', running.id, running.lease - s.now
      slot_wait(s, d.wait)
      return true
    end
    if h and hold_is_open(h) and h.state ~= 'pending' then
      unanswered = unanswered or h
    end
  end
  if unanswered then
    if d.retry_unknown and unanswered.scope == d.scope and unanswered.fingerprint == d.fingerprint
      and unanswered.units == d.units then
      adopt(d, r, s, unanswered)
    else
      r.verdict = 'outcome_unknown'
    end
    return true
  end
  if holds then r.verdict = 'subject_holds' end
  return holds
end
local function next_lapse(d, s, capacity)
  if d.truth == ('2') or d.keep_unknown or s.held == 0 or s.conf + d.units > capacity then return 0 end
  local first = redis.call('ZRANGEBYSCORE', s.k.due, int(s.now), ('(3000000000000000'),
    'WITHSCORES', 'LIMIT', 0, 1)
  return first[2] and math.max(1, tonumber(first[2]) - s.now) or 0
end
local function load_needed(d, s)
  if d.truth == ('0') or d.blind then return false end
  if truth_failed(s) and s.now - s.v.checked <= d.hot then return false end
  if d.truth == ('1') then return s.v.total == (-1) end
  return not truth_counts(s) and truth_wait(s, d.hold_ttl) == 0
end
local function stale(d, s)
  return d.truth ~= ('0') and not d.blind and s.now - s.v.checked > d.hot and truth_wait(s, d.hold_ttl) == 0
end
local function decide_left(d, r, s)
  local capacity, total = slot_capacity(s, d.capacity), slot_total(s, d.capacity)
  local short = capacity ~= (-1) and s.conf + s.held + d.units > capacity
  if total > 0 and d.units > total then
    r.verdict = 'over_capacity'
    return
  end
  if short and (not truth_failed(s) or stale(d, s)) then
    r.verdict, r.retry = 'sold_out', next_lapse(d, s, capacity)
    return
  end
  local mark, left = full_look(s, d.units)
  if short and mark == 'free' then
    full_mark(s, d.units, s.rel, false)
    mark, left = full_look(s, d.units)
  end
  if mark == 'full' or mark == 'probe' and d.line then
    r.verdict, r.retry = 'sold_out', left or 0
  end
  r.probe = mark == 'probe'
end
local function offer_holders(d, r, s)
  local capacity = slot_capacity(s, d.capacity)
  if d.repeats == 0 or d.blind or capacity == (-1) or s.conf + s.held < capacity or slot_doubtful(s) then return end
  if d.truth ~= ('0') and s.now + d.repeats - s.v.checked > d.hot then return end -- stale before that
  r.holders = slot_holders(s)
  if r.holders ~= '' then slot_wait(s, d.repeats) end
end
local function decide_units(d, r, s)
  local opens = s.opens or d.opens
  if s.closed then
    r.verdict = 'closed'
  elseif opens > s.now then
    r.verdict, r.retry = 'not_open', opens - s.now
  elseif load_needed(d, s) then
    r.verdict = 'load'
  else
    decide_left(d, r, s)
    if r.verdict == 'sold_out' and stale(d, s) then r.verdict, r.retry = 'load', 0 end
    if r.verdict == 'sold_out' then offer_holders(d, r, s) end
  end
  return r.verdict ~= nil
end
local function decide_look(d, s)
  truth_pace(s, d.hot, d.refresh)
  if slot_capacity(s, d.capacity) ~= (-1) and s.now - s.v.checked > d.refresh then truth_due(s, s.now) end
end
local function room_of(d, s)
  local room = d.max_inflight
  local unknown = slot_capacity(s, d.capacity) == (-1)
  if not (unknown or slot_doubtful(s)) then return room end
  local most = (4)
  if d.truth == ('2') then
    local unverified = slot_is_dirty(s) or truth_wait(s, d.hold_ttl) > 0
    if unverified or d.keep_unknown then most = 1 end
    if d.keep_unknown and (unverified or unknown) and s.held > s.v.pending then return 1, true end
  end
  return (room == 0 or room > most) and most or room
end
local function decide_room(d, r, s)
  local room, none = room_of(d, s)
  local awaited = '(' .. int((7000000000000000) + s.now)
  if not (d.line or none or room > 0 and redis.call('ZCOUNT', s.k.due, awaited, '+inf') >= room) then
    return false
  end
  r.verdict = 'no_room'
  local first = redis.call('ZRANGEBYSCORE', s.k.due, awaited, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  r.retry = first[2] and tonumber(first[2]) - (7000000000000000) - s.now or 0
  slot_wait(s, d.wait)
  return true
end
local function decide_admit(d, r, s)
  local h = slot_new_hold(s, d.id, d.units, d.subject, d.text, d.fingerprint, d.scope, d.key)
  slot_keyed(s, d.key, math.max(d.key_ttl, d.lease))
  h.expires = s.now + d.hold_ttl
  slot_start_attempt(s, h, d.id, d.lease)
  slot_move(s, h, 'held', 'decide')
  s.adm = s.adm + d.units
  if r.probe then full_probe(s, d.id, d.lease) end
  pool_note(d, s, h)
  r.verdict, r.hold = 'admitted', d.id
end
local function decide_cancel(d, r, s)
  local function may_mean(h)
    return h and (h.state == 'pending' or h.state == 'confirmed' and not d.confirms)
  end
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
  local function busy()
    local ids = d.whose ~= '' and slot_subject(s, d.whose).holds or {}
    for i = 1, math.min(#ids, (64)) do
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
    if running < (64) then return false end
    r.verdict, r.retry = 'no_room', first - s.now
    return true
  end
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
  for i = #s.cancels, 1, -1 do
    local c = s.cancels[i]
    if c.lease + (30000) <= s.now then
      if c.kind == ('c') and c.hold ~= '' then slot_doubt(s, c.hold) end
      table.remove(s.cancels, i)
    end
  end
  local h = d.meant
  r.verdict, r.hold = 'admitted', h and h.id or ''
  s.cancels[#s.cancels + 1] = { id = d.id, kind = d.confirms and ('f') or ('c'), hold = r.hold,
    open = h ~= nil and #h.attempts > 0, lease = s.now + d.lease, subject = d.whose }
  s.recalled = true
end
local _, resent, limits, ahead, id, _, _, _, units, capacity, opens, keyed, keep_unknown, repeats,
  proof, bare, subject, _, key, _, text, max_inflight, retain, lease, hold_ttl,
  gated, name, one_per_subject, max_per_subject, line, key_ttl, retry_unknown, wait, awaits, action, target, unreferenced, truth,
  hot, refresh, blind, under_hold, subject_is_full, only_looks, channel = cmsgpack.unpack(ARGV[1])
local now, us = clock(ahead)
local fingerprint, scope = string.match(proof, '^([^|]*)|(.*)$')
local d = {
  id = id, lease = lease, units = units, capacity = capacity, hold_ttl = hold_ttl, retain = retain,
  one_per_subject = one_per_subject, max_per_subject = max_per_subject, max_inflight = max_inflight,
  keep_unknown = keep_unknown, opens = opens, line = line, subject = subject, text = text,
  pool_subject = key_here(KEYS[10]), target_grave = KEYS[15],
  key_ttl = key_ttl, scope = scope, bare = bare, fingerprint = fingerprint, retry_unknown = retry_unknown, wait = wait,
  books = action == 0, confirms = action == 2, target = target, unreferenced = unreferenced,
  truth = truth, hot = hot, refresh = refresh, blind = blind, key = key, repeats = repeats, under = under_hold,
}
local r = { hold = '', owner = '', answer = '', holders = '', retry = 0, lapsed = 0, limits = {} }
local rec, s
local function bool(b) return b and '1' or '0' end
local function units_left()
  local looked = s and r.verdict ~= 'gone'
  local capacity = looked and slot_capacity(s, d.capacity) or (-1)
  if capacity == (-1) then return -1 end
  return math.max(0, capacity - s.conf - s.held)
end
local function answer()
  local admitted = r.verdict == 'admitted'
  local limits = {}
  for i, state in ipairs(r.limits) do limits[i] = limit_text(state) end
  local reply = table.concat({ r.recorded and 'recorded' or r.verdict, r.hold, bool(r.adopted), bool(admitted and r.probe),
    int(r.seen or s and s.rel or 0), r.owner, bool(r.may_replay), int(r.retry), int(r.lapsed), int(units_left()), r.holders,
    table.concat(limits, ','), r.answer }, '|')
  return s and slot_reply(s, us, reply) or reply
end
local function before()
  if keyed and awaits then
    local scope, left = key_left_answer(KEYS[14], now)
    if scope then
      r.verdict, r.may_replay = 'answered', key_may_replay(scope, d.scope, d.bare)
      r.answer = r.may_replay and left or ''
      return true
    end
  end
  if keyed then rec = key_load(KEYS[8], now) end
  if gated then
    local extra = { 'h:' .. d.id, 't:' .. d.id }
    if d.subject ~= '' then extra[#extra + 1] = 'u:' .. d.subject end
    if rec and rec.hold ~= '' then extra[#extra + 1] = 'h:' .. rec.hold end
    if d.under ~= '' then extra[#extra + 1] = 'h:' .. d.under end
    if d.target ~= '' then extra[#extra + 1] = 'h:' .. d.target end
    s = slot_load(slot_keys(name, KEYS[9], channel), now, d.truth, extra)
    if slot_finished(s, KEYS[6], KEYS[7]) then
      s = slot_untouched(s.k)
      r.verdict = 'gone'
      return true
    end
    if not decide_known_id(d, r, s) then return false end
    r.recorded = not s.k.index and r.verdict == 'admitted'
    return true
  end
  if keyed and finished(now, KEYS[6], KEYS[7]) then
    r.verdict = 'gone'
    return true
  end
  if rec and rec.owner == d.id then
    r.verdict = rec.state == 'running' and 'admitted' or 'gone'
    return true
  end
  return false
end
local function limited(name, key, at, verdict)
  if not limits or limits[at] == 0 then return false end
  local state = limit_look({ name = name, key = key, interval = limits[at], burst = limits[at + 1] }, us, d.id, resent)
  r.limits[#r.limits + 1] = state
  if not state.passes then
    r.verdict, r.retry = verdict, state.retry
    return true
  end
  if name == 'slot' then
    r.slot_limit = state
  else
    limit_charge(state, us, d.id)
  end
  return false
end
local function subject_full()
  if d.max_per_subject == 0 or d.subject == '' then return false end
  local full = subject_is_full
  if d.pool_subject then full = pool_units(d.pool_subject, now, d.id) + d.units > d.max_per_subject end
  if full then r.verdict = 'subject_full' end
  return full
end
local function under()
  local hold = d.under ~= '' and decide_under(d, r, s)
  if hold == 'booked' and keyed then
    key_complete(rec, d.key_ttl, '')
    replay(d, r, rec)
  elseif hold == 'booked' then
    r.verdict = 'booked'
  elseif hold == 'gone' and not keyed then
    r.verdict = 'hold_gone'
  elseif not r.verdict and only_looks then
    r.verdict = 'looked'
  end
  return r.verdict ~= nil
end
local function look()
  if gated and d.books then r.lapsed = slot_lapse(s, d.keep_unknown) end
  if keyed and decide_key(d, r, rec) then return true end
  if gated and under() then return true end
  if limited('subject', KEYS[12], 1, 'limited_subject') or limited('client', KEYS[13], 3, 'limited_client') then return true end
  if not gated then return false end
  if not d.books then return decide_cancel(d, r, s) end
  return decide_subject(d, r, s) or subject_full() or decide_units(d, r, s)
    or limited('slot', KEYS[11], 5, 'limited_slot') or decide_room(d, r, s)
end
if before() then return answer() end
if not look() then
  r.verdict = 'admitted'
  if r.slot_limit then limit_charge(r.slot_limit, us, d.id) end
  if gated and d.books then
    decide_admit(d, r, s)
  elseif gated then
    cancel_admit(d, r, s)
  end
end
if r.verdict == 'admitted' then
  if keyed then key_claim(rec, d.id, d.books and r.hold or '', d.fingerprint, d.scope, d.lease, d.key_ttl) end
elseif resent and gated then
  slot_finish(s, KEYS[7], '')
elseif resent and keyed then
  finish(KEYS[7], '', now)
end
if gated and d.truth ~= ('0') then decide_look(d, s) end
if gated then slot_save(s, us, d.retain) end
return answer()
