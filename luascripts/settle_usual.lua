-- The usual settle, straight through: a booking that is told of once, of the only attempt of a
-- hold that nobody cancels, under a key that its attempt owns and no twin waits for. The general
-- steps would do the same with several times the work. What is not so goes on to them: nothing
-- has been written then.

local AWAITED = '^%d+|0|:%d+:%d+()|'
local KEY_RUNNING = '^1|running(|%d+|)(%d+)|(%d+)()'

local function settle_usual()
  local _, usual, _, ahead, id, hold_field, note_field, subject_field, subject, taken, units, retain, keyed, key, owned, key_ttl, reference, refers =
    cmsgpack.unpack_limit(ARGV[1], 17, 0)
  if not usual then return end
  local now = clock(ahead)
  local call, format = redis.call, string.format

  local slot = call('HMGET', KEYS[1], 's', hold_field, note_field, subject_field)
  local state, hold = slot[1], slot[2]
  if not state or not hold or slot[3] or subject ~= '' and slot[4] ~= '0|' .. id .. '|'
    or #state ~= SLOT_LENGTH or string.find(state, '1|', 1, true) ~= 1 then return end
  local begins = 'held|' .. key .. '|'
  local rest = string.find(hold, begins, 1, true) == 1 and string.match(hold, AWAITED, #begins + 1)
  if not rest or string.find(hold, '|' .. units .. '|' .. subject .. '|', rest, true) ~= rest then return end
  local exp, conf, held, adm, ver, first, keyed_till, quiet, ref, rel, qw, idx, keep, grave, own, opens, closed, odd =
    struct.unpack(SLOT_STATE, state, 3)
  local remembered = now + retain
  if odd == 1 or exp <= now or qw > now or keep < remembered or now - idx >= INDEX_TOUCH then return end

  local record, leases, expires, waits, at
  local key_till = now + key_ttl
  if keyed then
    record = call('GET', KEYS[7]) or ''
    leases, expires, waits, at = string.match(record, KEY_RUNNING)
    if not at or string.find(record, owned, at, true) ~= at or #record ~= at + #owned - 1 then return end
    expires = tonumber(expires)
    if expires <= now or expires > key_till or waits ~= '0' and tonumber(waits) > now then return end
  end
  if quiet <= now then
    if call('PTTL', KEYS[5]) ~= NO_KEY then return end
    quiet = now + OUTBOX_LOOK
  end

  local stamp = format('%d', now)
  ver = ver + 1
  call('ZADD', KEYS[2], CONFIRMED .. stamp, id, ATTEMPT_OVER, '@' .. id)
  local entry = stamp .. '|' .. id .. '|' .. subject .. '|' .. units .. '|held|confirmed|booked'
  if ver % TRIM == 0 then
    call('ZREMRANGEBYSCORE', KEYS[2], ATTEMPTS, AWAITED_TILL .. stamp)
    call('XADD', KEYS[3], 'MAXLEN', '~', LEDGER_LENGTH, '*', 'e', entry)
  else
    call('XADD', KEYS[3], '*', 'e', entry)
  end
  if keyed then keyed_till = math.max(keyed_till, key_till + COPY_WINDOW) end
  local s = '1|' .. struct.pack(SLOT_HEAD, remembered, conf + taken, held - taken, adm, ver, first, keyed_till, quiet)
    .. string.sub(state, SLOT_TAIL)
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
