-- What a subject has over a pool: a hash of its own, hold id → units:expires. Its
-- entries expire by themselves, so that a lapse in another slot's script need not reach
-- them. On a cluster, where notes of a hold may overtake one another, they are
-- units:expires:noted, noted being the slot's time in µs, and that of a finished hold
-- stays for the copy window, with 0 units. Of a hold that its slot has not told of they are
-- units:expires/call, the call being that which reserved them.

-- Units the subject has in the pool, leaving out one hold; expired entries go.
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
