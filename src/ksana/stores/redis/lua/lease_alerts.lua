-- now, until, limit, hooks -> keys and values of the alerts leased

local now, till, limit = take(), take_number(), take_number()
local found = {}
for _ = 1, take_number() do
  local due = call('ZRANGEBYSCORE', 'owed:' .. take(), '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
  for index = 1, #due, 2 do found[#found + 1] = {key = due[index], due = tonumber(due[index + 1])} end
end
table.sort(found, function(a, b)
  if a.due ~= b.due then return a.due < b.due end
  return a.key < b.key
end)
local leased = {}
for index = 1, math.min(limit, #found) do
  local key = found[index].key
  local old = call('HGET', 'alerts', key)
  local _, ended, attempts, state, errs = struct.unpack(ALERT, old)
  local new = struct.pack(ALERT, till, ended, attempts + 1, state, errs) .. string.sub(old, ALERT_LENGTH + 1)
  replace_alert(key, old, new)
  leased[#leased + 1] = key
  leased[#leased + 1] = new
end
flush()
return leased
