-- The usual decide of a call that has limits: what limit.lua does, without its tables.

-- Looks without writing at the limit whose interval stands at a place of limits: nil where none
-- applies, false where one more event does not pass, else the theoretical arrival time.
local function usual_limit(key, limits, at, us)
  local interval = limits[at]
  if interval == 0 then return nil end
  local stored = redis.call('GET', key)
  local tat = us
  if stored then tat = math.max(us, tonumber(string.match(stored, '^(%d+)|') or us)) end
  return tat + interval - interval * limits[at + 1] <= us and tat
end

-- Charges those that apply, and returns how they stand, as decide replies it.
local function usual_charge(limits, us, id, by_subject, by_client, of_slot)
  local text = ''
  for i, tat in pairs({ by_subject, by_client, of_slot }) do
    local name, key = 'subject', KEYS[12]
    if i == 2 then name, key = 'client', KEYS[13] elseif i == 3 then name, key = 'slot', KEYS[11] end
    local interval, burst = limits[2 * i - 1], limits[2 * i]
    tat = tat + interval
    local remaining = math.max(0, math.floor((interval * burst - (tat - us)) / interval))
    local reset = string.format('%d', math.ceil((tat - us) / 1000))
    redis.call('SET', key, string.format('%d|', tat) .. id, 'PX', reset)
    text = text .. (text == '' and '' or ',') .. name .. string.format(':%d:', remaining) .. reset
  end
  return text
end

if has_limits then
  decided = decide_usual(usual_limit, usual_charge)
  if decided then return decided end
end
