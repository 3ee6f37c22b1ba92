-- since, until (whole minutes) -> keys and values of the minutes

local since, till = take_number(), take_number()
local open_from = math.max(since, rolled_until())
local closed_till = math.min(till, open_from)
local found = {}
if closed_till > since then
  for _, key in ipairs(call('ZRANGEBYLEX', 'minutes:order', '[' .. placed(since), '(' .. placed(closed_till))) do
    found[#found + 1] = key
    found[#found + 1] = call('HGET', 'minutes', key)
  end
end
for _, minute in ipairs(call('ZRANGEBYSCORE', 'open', open_from, '(' .. plain(till))) do
  for key, value in pairs(sums_of(minute)) do
    found[#found + 1] = key
    found[#found + 1] = value
  end
end
return found
