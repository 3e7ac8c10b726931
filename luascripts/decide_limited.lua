-- The usual decide of a call that has limits.

-- How one more event stands to a limit: nil where none applies, else what limit_look says.
local function usual_limit(name, key, limits, at, us, id)
  if limits[at] == 0 then return nil end
  return limit_look({ name = name, key = key, interval = limits[at], burst = limits[at + 1] }, us, id, false)
end

-- Charges those that apply, and returns how they stand.
local function usual_charge(us, id, one, two, three)
  local limits = ''
  for _, state in pairs({ one, two, three }) do
    limit_charge(state, us, id)
    limits = (limits == '' and '' or limits .. ',') .. limit_text(state)
  end
  return limits
end

if has_limits then
  decided = decide_usual(usual_limit, usual_charge)
  if decided then return decided end
end
