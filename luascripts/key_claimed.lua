-- A claim belongs to one call of one request: a late copy of an earlier call must not end
-- what the request has claimed since.

local function key_is_claimed(rec, id, call)
  return rec.state == 'running' and rec.owner == id and rec.by == call
end
