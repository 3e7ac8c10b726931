-- Cancels and confirms that run on a slot (gate/store, "Cancel and confirm"): the
-- field c, entries joined by commas of
--
--   id:kind:hold:open:lease:subject hash
--
-- kind is c for a cancel, f for a confirm; hold is what it means, "" nothing; open is 1
-- where that had attempts unanswered when the cancel was decided. An entry goes when it is settled, or with the first cancel that comes
-- COPY_WINDOW after its lease.

local CANCEL = 'c'
local CONFIRM = 'f'

local function cancels_unpack(packed)
  local list = {}
  for id, kind, hold, open, lease, subject in
    string.gmatch(packed, '([^:,]+):(%a):([^:,]*):([01]):(%d+):([^:,]*)') do
    list[#list + 1] = { id = id, kind = kind, hold = hold, open = open == '1', lease = tonumber(lease),
      subject = subject }
  end
  return list
end

local function cancels_pack(list)
  local packed = {}
  for i, c in ipairs(list) do
    packed[i] = table.concat({ c.id, c.kind, c.hold, c.open and '1' or '0', int(c.lease), c.subject }, ':')
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
