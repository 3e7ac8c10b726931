-- Takes entries of a slot's ledger that are not in the pool's outbox yet, on a cluster. Who
-- took them puts them there (publish.lua), then says so (shipped.lua); until then, or for
-- the lease, others get none.
--
-- The slot's field g is the id of the last entry that was shipped|gate|until.
--
-- KEYS  1 slot  2 log
-- ARGV  1 clock ahead, ms  2 resent 0|1 (not needed)  3 channel of notices (not needed)
--       4 gate  5 lease, ms  6 how many at most  7 the pool counts what its subjects have 0|1
--       8 keep_unknown 0|1  9 truth 0 none|1 total|2 remaining  10 retain, ms  11 run
-- Reply as slot_reply says: entries, each its id and a list of its fields, and what the pool
--       is to know of their holds. That is how these stand now, which a gate that died may
--       not have told: what an entry says may be over long since. A copy of the call replies
--       the same.

local now, us = clock(ARGV[1])

-- Notes what the holds of some entries count for.
local function tell(s, d, entries)
  local ids, names, subjects = {}, {}, {}
  for _, entry in ipairs(entries) do
    local id, subject = string.match(entry[2][2], '^%d+|([^|]*)|([^|]+)|')
    if id and not subjects[id] then
      ids[#ids + 1], names[#names + 1], subjects[id] = id, 'h:' .. id, subject
    end
  end
  if #ids == 0 then return end
  local packed = redis.call('HMGET', KEYS[1], unpack(names))
  for i, id in ipairs(ids) do
    if packed[i] then
      pool_note(d, s, hold_parse(id, packed[i], KEYS[1]))
    else
      pool_tell(s, id, subjects[id], 0, COPY_WINDOW)
    end
  end
end

local s = { k = {}, now = now, entries = {}, pooled = {} }
local state = redis.call('HMGET', KEYS[1], 's', 'g')
if not state[1] then return slot_reply(s, us, {}) end
local cursor, gate, till = string.match(state[2] or '', '^(%d+%-%d+)|([^|]*)|(%d+)$')
if gate and gate ~= ARGV[4] and tonumber(till) > now then return slot_reply(s, us, {}) end
local entries = redis.call('XRANGE', KEYS[2], cursor and '(' .. cursor or '-', '+', 'COUNT', ARGV[6])
if #entries > 0 then
  redis.call('HSET', KEYS[1], 'g', (cursor or '0-0') .. '|' .. ARGV[4] .. '|' .. int(now + tonumber(ARGV[5])))
  if ARGV[7] == '1' then
    tell(s, { max_per_subject = 1, keep_unknown = ARGV[8] == '1', truth = ARGV[9], retain = tonumber(ARGV[10]) }, entries)
  end
end
return slot_reply(s, us, entries)
