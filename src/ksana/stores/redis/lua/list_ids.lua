-- ranges -> all ids in them

local found = {}
for _, range in ipairs(take_ranges()) do
  for _, name in ipairs(call('ZRANGEBYSCORE', range.key, range.low, range.high)) do found[#found + 1] = name end
end
return found
