-- The usual settle, straight through: a booking that is told of once, of the only attempt of a
-- hold that nobody cancels, under a key that its attempt owns and no twin waits for. The general
-- steps would do the same with ten times the work. What is not so goes on to them: nothing has
-- been written then.

local HELD = '^held|(%d+)|([^|]*)|(%d+)|%d+|0|([^|:,]+):(%d+):%d+|(.*)$'
local KEY_RUNNING = '^(1|)running(|([^|]*)|[^|]*|[^|]*|[^|]*|%d+|)(%d+)(|(%d+)|[^|]*|)$'

local function settle_usual()
  local id, subject = ARGV[4], ARGV[17]
  local plain = ARGV[5] == 'booked' and ARGV[6] == '1' and ARGV[7] == id and ARGV[25] == '0' and ARGV[26] == '0'
    and ARGV[13] == '0' and ARGV[16] == '0' and ARGV[27] == '0' and ARGV[28] == '' and KEYS[4] ~= KEYS[1]
  local keyed = ARGV[19] == '1'
  if not plain or keyed and ARGV[21] == '0' then return end
  local now = clock(ARGV[1])

  local slot = redis.call('HMGET', KEYS[1], 's', 'm', 'd', 'c', 'f:' .. id, 'w:' .. subject, 'h:' .. id, 'u:' .. subject)
  local state = slot[1]
  if not state or not slot[7] or slot[2] or slot[3] or slot[4] or slot[5] or slot[6] then return end
  local units, whose, taken, attempt, lease, rest = string.match(slot[7], HELD)
  if attempt ~= id or whose ~= subject or subject ~= '' and slot[8] ~= '0|' .. id then return end
  local exp, conf, held, adm, ref, rel, ver, qw, idx, keep, first, grave, quiet, keyed_till = string.match(state, SLOT_STATE)
  if not exp or string.sub(state, 1, 2) ~= '1|' then return end
  ver = ver + 1
  local remembered = now + ARGV[12]
  if tonumber(exp) <= now or tonumber(qw) > now or tonumber(quiet) <= now or tonumber(keep) < remembered
    or now - idx >= INDEX_TOUCH then return end

  local version, before, owner, expires, after, waits
  if keyed then
    version, before, owner, expires, after, waits = string.match(redis.call('GET', KEYS[10]) or '', KEY_RUNNING)
    if owner ~= id or tonumber(expires) <= now or tonumber(waits) > now then return end
  end

  local format = string.format
  redis.call('ZADD', KEYS[2], format('%d', CONFIRMED_ZONE + now), id, format('%d', ATTEMPT_ZONE + ATTEMPT_ENDED), '@' .. id)
  if ver % ATTEMPT_TRIM == 0 then trim_attempts(KEYS[2], now) end
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', '1000', '*', 'e',
    format('%d|%s|%s|%s|held|confirmed|booked', now, id, subject, units))
  if keyed then keyed_till = format('%d', math.max(keyed_till, now + ARGV[20] + COPY_WINDOW)) end
  local s = format('1|%d|%d|%d|%s|%s|%s|%d|%s|%s|%s|%s|%s|%s|%s', remembered, conf + units, held - units, adm, ref, rel, ver,
    qw, idx, keep, first, grave, quiet, keyed_till)
  local h = format('confirmed|%s|%s|%s|0|0||', units, subject, taken) .. rest
  if subject ~= '' then
    redis.call('HSET', KEYS[1], 's', s, 'h:' .. id, h, 'u:' .. subject, '1|', 'w:' .. subject, id)
  else
    redis.call('HSET', KEYS[1], 's', s, 'h:' .. id, h)
  end
  if keyed then
    expires = math.max(expires, now + ARGV[20])
    redis.call('SET', KEYS[10], format('%sdone%s%d%s', version, before, expires, after) .. ARGV[22], 'PX', int(expires - now))
  end
  return { '1', 'confirmed', '0', '0', '0' }
end

local settled = settle_usual()
if settled then return settled end
