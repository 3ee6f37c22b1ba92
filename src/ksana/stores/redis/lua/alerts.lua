-- Alerts. A value begins with what scripts change: when it is due, when it ended, how often it was tried, its state, and
-- where in it the error begins.

local ALERT = '<i8i8i4c1I4'
local ALERT_LENGTH = 25
-- Higher than any id, and still a number that is exact.
local NEWEST = 9000000000000000

local function stand_alert(key, shown_as, hook, value, place)
  local due, ended, _, state = struct.unpack(ALERT, value)
  place('alerts:' .. state, shown_as, '0')
  if due ~= NONE then
    place('owed:' .. hook, key, plain(due))
    if place == enter then register('hooks', hook) end
  end
  if ended ~= NONE then place('alerts:ended', key, plain(ended)) end
end

-- The key in rising order of run and epoch, and the same as it stands in the list that shows the newest first.
local function split_alert(key)
  local run, epoch, hook = string.sub(key, 1, 16), string.sub(key, 17, 32), string.sub(key, 33)
  return hook, padded(NEWEST - tonumber(run)) .. padded(NEWEST - tonumber(epoch)) .. hook
end

local function add_alert(key, value)
  if not shelve('alerts', key, value) then return false end
  local hook, shown_as = split_alert(key)
  stand_alert(key, shown_as, hook, value, enter)
  return true
end

local function replace_alert(key, old, new)
  touch(key)
  local hook, shown_as = split_alert(key)
  stand_alert(key, shown_as, hook, old, leave)
  stand_alert(key, shown_as, hook, new, enter)
  call('HSET', 'alerts', key, new)
end

-- Keep alerts, but for those of runs whose moves came too late. One that is there was put there by the same move.
local function keep_alerts(lost)
  for _ = 1, take_number() do
    local key, value = take(), take()
    if not lost[plain(tonumber(string.sub(key, 1, 16)))] then add_alert(key, value) end
  end
end
