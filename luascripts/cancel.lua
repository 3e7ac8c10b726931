-- Cancels and confirms that run on a slot (gate/store, "Cancel and confirm"): the
-- field c, entries joined by commas of
--
--   id:kind:hold:units:lease:subject hash
--
-- kind is c for a cancel, f for a confirm; hold and its units are what it means, ""
-- and 0 for nothing. An entry goes when it is settled, or with the first cancel that comes
-- COPY_WINDOW after its lease.

local CANCEL = 'c'
local CONFIRM = 'f'

local function cancels_unpack(packed)
  local list = {}
  for id, kind, hold, units, lease, subject in
    string.gmatch(packed, '([^:,]+):(%a):([^:,]*):(%d+):(%d+):([^:,]*)') do
    list[#list + 1] = { id = id, kind = kind, hold = hold, units = tonumber(units), lease = tonumber(lease),
      subject = subject }
  end
  return list
end

local function cancels_pack(list)
  local packed = {}
  for i, c in ipairs(list) do
    packed[i] = table.concat({ c.id, c.kind, c.hold, int(c.units), int(c.lease), c.subject }, ':')
  end
  return table.concat(packed, ',')
end

local function cancel_of(s, id)
  for i, c in ipairs(s.cancels) do
    if c.id == id then return c, i end
  end
end

-- A cancel of the subject that is awaited now, or nil.
local function cancel_running(s, subject)
  if subject == '' then return nil end
  for _, c in ipairs(s.cancels) do
    if c.kind == CANCEL and c.subject == subject and c.lease > s.now then return c end
  end
end
