-- The index of a pool's slots: a zset of their own texts by when each was last noted, in
-- microseconds, so that no two are the same. Those that have long been idle go, some with
-- each note.

local function index_note(index, name, us, retain)
  local life = retain + 2 * INDEX_TOUCH
  redis.call('ZADD', index, int(us), name)
  redis.call('PEXPIRE', index, int(life))
  local idle = redis.call('ZRANGEBYSCORE', index, '-inf', int(us - life * 1000), 'LIMIT', 0, INDEX_TRIM)
  if #idle > 0 then redis.call('ZREM', index, unpack(idle)) end
end
