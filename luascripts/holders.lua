-- Whom a slot knows, so that a gate can tell all others by itself that it is sold out
-- (gate/store, Holders): subjects and keys, each by the first letters of its hash. The keys
-- of holds stand in them. Of those whose hold is gone, or is another's, the slot keeps a
-- list, its field k:
--
--   until|key,key,...
--
-- until is when the last of them is forgotten, * instead of a key that there were more.

local SHORT_HASH = 11
local MAX_STRAYS = 64
local MAX_HOLDERS = 512
local FIELDS_OF_A_HOLDER = 3

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

-- A key is remembered that no hold of the slot stands for any more. Of one that was used
-- while nobody knew the slot nothing is noted.
local function slot_stray(s, key)
  if not s.known or key == '' or s.keyed <= s.now then return end
  local strays = slot_strays(s)
  for _, other in ipairs(strays) do
    if other == key or other == '*' then return end
  end
  strays[#strays + 1] = #strays < MAX_STRAYS and key or '*'
  s.strayed = true
end

local function strays_pack(s) return int(s.keyed) .. '|' .. table.concat(s.strays, ',') end

-- A key may be remembered for so long from now. Its record may be written a bit later, on
-- a cluster by the clock of another shard.
local function slot_keyed(s, key, ttl)
  if key ~= '' then s.keyed = math.max(s.keyed, s.now + ttl + COPY_WINDOW) end
end

-- The hashes, one after the other behind a 1; "" where they are too many, or not all known.
local function slot_holders(s)
  if not s.known or redis.call('HLEN', s.k.hash) > FIELDS_OF_A_HOLDER * MAX_HOLDERS then return '' end
  local list = { '1' }
  for _, key in ipairs(slot_strays(s)) do
    if key == '*' then return '' end
    list[#list + 1] = key
  end
  local all = redis.call('HGETALL', s.k.hash)
  for i = 1, #all, 2 do
    local kind = string.sub(all[i], 1, 2)
    if kind == 'u:' then
      list[#list + 1] = string.sub(all[i], 3, 2 + SHORT_HASH)
    elseif kind == 'h:' then
      list[#list + 1] = string.match(all[i + 1], '^%a+|([^|]*)')
    end
  end
  for _, c in ipairs(s.cancels) do list[#list + 1] = string.sub(c.subject, 1, SHORT_HASH) end
  return table.concat(list)
end
