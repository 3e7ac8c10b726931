-- The usual decide, straight through: a booking of a slot that is known and verified, of which
-- nothing is due, marked, touched, cancelled or closed, or of one that nobody knows yet; under a key
-- that is done, or one that is new, by a subject that has nothing there, within its limits. The general
-- steps would decide the same with several times the work. What is not so goes on to them: nothing has
-- been written then.
--
-- A text costs by its bytes here, and a number that becomes one is dear: what is the same in
-- several texts is made once, what the gate knows as text stays text, and what only an admit
-- asks for is not read before.

local PACKED_NIL = 192
local KEY_DONE = '^1|done|%d+|(%d+)|%d+()'

-- A key that is done is answered from its record: nil where it is not, or not for this caller.
-- asked is where what an admit or a replay asks for begins.
local function usual_replay(record, asked, now, rel, left)
  local _, proof, bare = cmsgpack.unpack_limit(ARGV[1], 2, asked)
  local expires, at = string.match(record, KEY_DONE)
  local same = '|' .. proof .. '|'
  if not at or string.find(record, same, at, true) ~= at or not bare and string.sub(proof, -1) == '|' or tonumber(expires) <= now then
    return
  end
  local answer = string.match(record, '^[^|]*|[^|]*|[^|]*|()', at + #same)
  return string.format('replay||0|0|%d||1|0|0|%d|||', rel, math.max(0, left)) .. string.sub(record, answer)
end

-- look and charge see to the limits (decide_limited.lua). Without them a call that has any is
-- not decided, and the second value is true.
local function decide_usual(look, charge)
  if not look and string.byte(ARGV[1], 3) ~= PACKED_NIL then return nil, true end
  local asked, usual, resent, limits, ahead, id, hold_field, adopted_field, subject_field, taken, capacity, opens, keyed, keep_unknown,
    repeats = cmsgpack.unpack_limit(ARGV[1], 14, 0)
  if not usual or resent then return end
  local now, us = clock(ahead)
  local call, format = redis.call, string.format

  local slot = call('HMGET', KEYS[1], 's', 'r', hold_field, adopted_field, subject_field)
  local state, run = slot[1], slot[2]
  local born = not state and string.match(ARGV[2], '^([^|]*)|0|') -- the run that a slot begins in which nobody knows
  if born then
    local retain = select(10, cmsgpack.unpack_limit(ARGV[1], 9, asked))
    local keep = now + retain + math.max(KEEP_MORE, math.floor(retain / 8))
    run, state = born, '1|' .. struct.pack(SLOT_STATE, keep, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, now, keep, now + COPY_WINDOW,
      AS_CONFIGURED, AS_CONFIGURED, 0, 0)
  end
  if not state or slot[3] or slot[4] or #state ~= SLOT_LENGTH or string.find(state, '1|', 1, true) ~= 1
    or not run or string.find(ARGV[2], run .. '|', 1, true) ~= 1 then return end
  local exp, conf, held, adm, ver, first, keyed_till, quiet, ref, rel, qw, idx, keep, grave, own, own_opens, closed, odd =
    struct.unpack(SLOT_STATE, state, 3)
  if own ~= AS_CONFIGURED then capacity = own end
  if own_opens ~= AS_CONFIGURED then opens = own_opens end
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
    if repeats > 0 and left <= 0 and call('HLEN', KEYS[1]) <= FIELDS_OF_A_HOLDER * MAX_HOLDERS then return end
    local lapses = 0
    if not keep_unknown and held > 0 and conf + taken <= capacity then
      local next = call('ZRANGEBYSCORE', KEYS[2], format('%d', now), BELOW_KEPT, 'WITHSCORES', 'LIMIT', 0, 1)
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
  local after, proof, _, subject, units, key, ttl, text, room, retain, lease, hold_ttl = cmsgpack.unpack_limit(ARGV[1], 11, asked)
  local stamp, seen = format('%d', now), rel == 0 and '0' or format('%d', rel)
  if room > 0 and call('ZCOUNT', KEYS[2], '(' .. AWAITED_TILL .. stamp, '+inf') >= room then return end
  local remembered = now + retain
  if keep < remembered or now - idx >= INDEX_TOUCH then return end
  if quiet <= now then
    if call('PTTL', KEYS[5]) ~= NO_KEY then return end
    quiet = now + OUTBOX_LOOK
  end

  local expires = now + hold_ttl
  local lapses, awaited = format('%d', expires), format('%d', now + lease)
  ver = ver + 1
  if first == 0 or expires < first then first = expires end
  if keyed then
    -- The last check, and the first that is written.
    local key_till = now + ttl
    local record = '1|running|' .. awaited .. '|' .. format('%d', key_till) .. '|0|' .. proof .. '|' .. id .. '|' .. id .. '||'
    local standing = call('SET', KEYS[8], record, 'NX', 'GET', 'PX', ttl)
    if standing then return usual_replay(standing, asked, now, rel, left) end
    keyed_till = math.max(keyed_till, key_till + COPY_WINDOW)
  end
  call('ZADD', KEYS[2], lapses, id, AWAITED_TILL .. awaited, '@' .. id)
  local entry = stamp .. '|' .. id .. '|' .. subject .. '|' .. units .. '||held|decide'
  if ver % TRIM == 0 then
    call('ZREMRANGEBYSCORE', KEYS[2], ATTEMPTS, AWAITED_TILL .. stamp)
    call('XADD', KEYS[3], 'MAXLEN', '~', LEDGER_LENGTH, '*', 'e', entry)
  else
    call('XADD', KEYS[3], '*', 'e', entry)
  end
  local s = '1|' .. struct.pack(SLOT_HEAD, remembered, conf, held + taken, adm + taken, ver, first, keyed_till, quiet)
    .. string.sub(state, SLOT_TAIL)
  local h = 'held|' .. key .. '|' .. lapses .. '|0|:' .. awaited .. ':' .. seen .. '|' .. units
    .. '|' .. subject .. '|' .. stamp .. '|' .. proof .. '|' .. text
  if subject ~= '' then
    call('HSET', KEYS[1], 's', s, hold_field, h, subject_field, '0|' .. id .. '|')
  else
    call('HSET', KEYS[1], 's', s, hold_field, h)
  end
  if adm == 0 then call('PEXPIRE', KEYS[3], format('%d', keep - now)) end -- its ledger begins
  if born then
    local life, _, _, name = keep - now, cmsgpack.unpack_limit(ARGV[1], 2, after)
    call('HSET', KEYS[1], 'r', run)
    call('ZADD', KEYS[2], ATTEMPT_ZONE, '@')
    call('PEXPIRE', KEYS[1], life)
    call('PEXPIRE', KEYS[2], life)
    index_note(KEYS[4], name, us, retain)
  end
  local limited = look and charge(limits, us, id, by_subject, by_client, of_slot) or ''
  return 'admitted|' .. id .. '|0|0|' .. seen .. '||0|0|0|' .. format('%d', left - taken) .. '||' .. limited .. '|'
end

local decided, has_limits = decide_usual()
if decided then return decided end
