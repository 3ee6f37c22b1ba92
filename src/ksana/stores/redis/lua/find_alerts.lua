-- run or nothing, offset, limit, states -> how many there are, and the values of a page of them

local run, offset, limit = take(), take_number(), take_number()
local low, high = '-', '+'
if run ~= '' then
  local first = padded(NEWEST - tonumber(run))
  low, high = '[' .. first, '(' .. first .. '\255'
end
local total, found = 0, {}
for _ = 1, take_number() do
  local key = 'alerts:' .. take()
  total = total + call('ZLEXCOUNT', key, low, high)
  for _, shown_as in ipairs(call('ZRANGEBYLEX', key, low, high, 'LIMIT', 0, offset + limit)) do
    found[#found + 1] = shown_as
  end
end
table.sort(found)
local page = {}
for index = offset + 1, math.min(offset + limit, #found) do
  local hook, key = split_alert(found[index])
  page[#page + 1] = key
  page[#page + 1] = call('HGET', 'alerts', key)
end
return {total, page}
