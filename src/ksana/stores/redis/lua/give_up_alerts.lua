-- before, now, error, hooks that are known -> hooks that nobody serves, each with how many alerts it had

local before, now, problem = take_number(), take_number(), take()
local known = {}
for _ = 1, take_number() do known[take()] = true end
local given_up = {}
for _, hook in ipairs(call('SMEMBERS', 'hooks')) do
  local last = call('ZRANGE', 'owed:' .. hook, -1, -1, 'WITHSCORES')
  if #last == 0 then
    call('SREM', 'hooks', hook)
  elseif not known[hook] and tonumber(last[2]) <= before then
    local owed = call('ZRANGE', 'owed:' .. hook, 0, -1)
    for _, key in ipairs(owed) do
      local old = call('HGET', 'alerts', key)
      local _, _, attempts, _, errs = struct.unpack(ALERT, old)
      local head = struct.pack(ALERT, NONE, now, attempts, 'f', errs)
      replace_alert(key, old, head .. string.sub(old, ALERT_LENGTH + 1, errs) .. problem)
    end
    given_up[#given_up + 1] = hook
    given_up[#given_up + 1] = #owed
  end
end
flush()
return given_up
