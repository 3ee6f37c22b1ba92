-- end, step -> how many minutes were summed up for good

local last, step = take_number(), take_number()
local start_from = rolled_until()
if start_from >= last then return 0 end
-- What was restored may lie in minutes that were summed up elsewhere.
for _, minute in ipairs(call('ZRANGEBYSCORE', 'open', '-inf', '(' .. start_from)) do
  call('DEL', 'open:' .. minute)
  call('ZREM', 'open', minute)
end
local first = call('ZRANGE', 'open', 0, 0)[1]
if start_from == NONE and not first then return 0 end
-- Minutes in which nothing ended are stepped over at once, however many there are.
local start = first and math.min(last, tonumber(first)) or last
local stop = math.min(last, start + step)
for _, minute in ipairs(call('ZRANGEBYSCORE', 'open', '-inf', '(' .. stop)) do
  for key, value in pairs(sums_of(minute)) do shelve('minutes', key, value) end
  call('DEL', 'open:' .. minute)
  call('ZREM', 'open', minute)
end
local count = math.floor((stop - (start_from == NONE and start or start_from)) / MINUTE)
if start_from ~= NONE or count > 0 then call('HSET', 'standing', 'rolled', plain(stop)) end
flush()
return count
