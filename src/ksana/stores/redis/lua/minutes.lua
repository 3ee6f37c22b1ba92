-- Minutes that are summed up for good: found by the minute, the kind and the state, in that order.

local MINUTE_OFFSET = 100000000000000000

-- Text that is in order for instants before 1970, too.
local function placed(instant)
  return string.format('%018.0f', instant + MINUTE_OFFSET)
end

local function sums_of(minute)
  local fields, found = call('HGETALL', 'open:' .. minute), {}
  for index = 1, #fields, 2 do
    local name, part = string.sub(fields[index], 1, -2), string.sub(fields[index], -1)
    found[name] = found[name] or {}
    found[name][part] = tonumber(fields[index + 1])
  end
  local rows = {}
  for name, sum in pairs(found) do
    local key = placed(tonumber(minute)) .. string.sub(name, 1, -2) .. STATES[string.sub(name, -1)]
    rows[key] = string.format('%.0f %.0f %.0f', sum.n, math.floor(sum.b / 1000), math.floor(sum.l / 1000))
  end
  return rows
end
