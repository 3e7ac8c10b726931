-- The index of a pool's slots: a zset of their own texts by when each was last noted, in
-- microseconds, so that no two are the same. Those that have long been idle go, some with
-- each note.

local function index_note(index, name, us, retain)
  local call, life = redis.call, retain + 2 * INDEX_TOUCH
  call('ZADD', index, string.format('%d', us), name)
  call('PEXPIRE', index, string.format('%d', life))
  local idle = call('ZRANGEBYSCORE', index, '-inf', string.format('%d', us - life * 1000), 'LIMIT', 0, INDEX_TRIM)
  if #idle > 0 then call('ZREM', index, unpack(idle)) end
end
