-- The usual decide, straight through: a booking of a slot that is known and verified, of which
-- nothing is due, marked, touched, cancelled or set, by a subject that has nothing there, within
-- its limits, and under a key that is new or done. The general steps would decide the same with
-- ten times the work. What is not so goes on to them: nothing has been written then.

local KEY_DONE = '^1|done|[^|]*|[^|]*|([^|]*)|([^|]*)|%d+|(%d+)|%d+|[^|]*|(.*)$'

-- How one more event stands to a limit: nil where none applies, else what limit_look says.
local function usual_limit(name, key, at, us)
  if ARGV[at] == '0' then return nil end
  return limit_look({ name = name, key = key, interval = tonumber(ARGV[at]), burst = tonumber(ARGV[at + 1]) }, us, ARGV[4], false)
end

-- Adds to a reply how a limit stands, charged.
local function usual_charge(reply, state, us)
  if not state then return end
  limit_charge(state, us, ARGV[4])
  reply[#reply + 1] = state.limit.name
  reply[#reply + 1] = int(state.remaining)
  reply[#reply + 1] = int(state.reset)
end

local function decide_usual()
  local id, name, subject = ARGV[4], ARGV[7], ARGV[18]
  local units, capacity, room = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[14])
  local plain = ARGV[2] == '0' and ARGV[6] == '1' and ARGV[35] == '0' and ARGV[38] == '0' and KEYS[4] ~= KEYS[1]
    and ARGV[13] == '0' and ARGV[17] == '0' and ARGV[27] == '0'
  if not plain or units > capacity then return end
  local now, us = clock(ARGV[1])

  local slot = redis.call('HMGET', KEYS[1], 's', 'r', 'm', 'o', 'd', 'c', 'h:' .. id, 't:' .. id, 'u:' .. subject)
  local state = slot[1]
  if not state or slot[2] ~= RUN or slot[3] or slot[4] or slot[5] or slot[6] or slot[7] or slot[8] or slot[9] then return end
  local exp, conf, held, adm, ref, rel, ver, qw, idx, keep, first, grave, quiet, keyed_till = string.match(state, SLOT_STATE)
  if not exp or string.sub(state, 1, 2) ~= '1|' then return end
  conf, held, ver, first = tonumber(conf), tonumber(held), ver + 1, tonumber(first)
  local remembered = now + ARGV[11]
  if tonumber(exp) <= now or first ~= 0 and first <= now or tonumber(quiet) <= now or tonumber(keep) < remembered
    or now - idx >= INDEX_TOUCH or tonumber(ARGV[16]) > now then return end
  if tonumber(grave) > now then
    local graves = redis.call('MGET', KEYS[7], KEYS[8])
    if graves[1] or graves[2] then return end
  end

  local keyed = ARGV[20] == '1'
  local record = keyed and redis.call('GET', KEYS[11])
  if record then
    local fingerprint, scope, expires, answer = string.match(record, KEY_DONE)
    if not answer or fingerprint ~= ARGV[24] or scope ~= ARGV[22] or scope == '' and ARGV[23] == '0'
      or tonumber(expires) <= now then return end
    return { 'replay', '', '0', '0', rel, '', '1', answer, '0', '0', int(math.max(0, capacity - conf - held)), '' }
  end

  local by_subject, by_client
  if ARGV[28] == '0' then
    by_subject, by_client = usual_limit('subject', KEYS[13], 29, us), usual_limit('client', KEYS[14], 31, us)
    if by_subject and not by_subject.passes or by_client and not by_client.passes then return end
  end
  if conf + held + units > capacity then
    if ARGV[43] ~= '0' then return end
    local lapses = 0
    if ARGV[15] == '0' and held > 0 and conf + units <= capacity then
      local next = redis.call('ZRANGEBYSCORE', KEYS[2], int(now), '(' .. int(KEPT_ZONE), 'WITHSCORES', 'LIMIT', 0, 1)
      if next[2] then lapses = math.max(1, next[2] - now) end
    end
    local reply = { 'sold_out', '', '0', '0', rel, '', '0', '', int(lapses), '0', int(math.max(0, capacity - conf - held)), '' }
    usual_charge(reply, by_subject, us)
    usual_charge(reply, by_client, us)
    return reply
  end
  local of_slot = usual_limit('slot', KEYS[9], 33, us)
  if of_slot and not of_slot.passes then return end
  if room > 0 and redis.call('ZCOUNT', KEYS[2], '(' .. int(ATTEMPT_ZONE + now), '+inf') >= room then return end

  -- Text and not numbers goes to Redis: Lua would write these as %.17g, which is slow.
  local format = string.format
  local lease, expires = now + ARGV[5], now + ARGV[10]
  held = held + units
  if first == 0 or expires < first then first = expires end
  redis.call('ZADD', KEYS[2], format('%d', expires), id, format('%d', ATTEMPT_ZONE + lease), '@' .. id)
  if ver % ATTEMPT_TRIM == 0 then trim_attempts(KEYS[2], now) end
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', '1000', '*', 'e',
    format('%d|%s|%s|%d||held|decide', now, id, subject, units))
  local ttl = keyed and math.max(ARGV[21], ARGV[5])
  if keyed then keyed_till = format('%d', math.max(keyed_till, now + ttl + COPY_WINDOW)) end
  local s = format('1|%d|%d|%d|%d|%s|%s|%d|%s|%s|%s|%d|%s|%s|%s', remembered, conf, held, adm + units, ref, rel, ver, qw, idx, keep,
    first, grave, quiet, keyed_till)
  local h = format('held|%d|%s|%d|%d|0|%s:%d:%s|%s|%s|%s|', units, subject, now, expires, id, lease, rel, ARGV[24], ARGV[22], ARGV[42]) .. ARGV[19]
  if subject ~= '' then
    redis.call('HSET', KEYS[1], 's', s, 'h:' .. id, h, 'u:' .. subject, '0|' .. id)
  else
    redis.call('HSET', KEYS[1], 's', s, 'h:' .. id, h)
  end
  if keyed then
    redis.call('SET', KEYS[11], format('1|running|%s|%s|%s|%s|%d|%d|0||', id, id, ARGV[24], ARGV[22], lease, now + ttl), 'PX', int(ttl))
  end
  local reply = { 'admitted', id, '0', '0', rel, '', '0', '', '0', '0', int(capacity - conf - held), '' }
  usual_charge(reply, by_subject, us)
  usual_charge(reply, by_client, us)
  usual_charge(reply, of_slot, us)
  return reply
end

local decided = decide_usual()
if decided then return decided end
