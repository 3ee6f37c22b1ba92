-- offset, limit, descending | ranges -> total, jobs

local offset, limit, descending = take_number(), take_number(), take() == '1'
local ranges = take_ranges()
local total, jobs = 0, {}
for _, range in ipairs(ranges) do total = total + call('ZCOUNT', range.key, range.low, range.high) end
local found = merged(ranges, offset + limit, descending)
for index = offset + 1, math.min(offset + limit, #found) do
  jobs[#jobs + 1] = found[index].name
  jobs[#jobs + 1] = call('GET', 'job:' .. found[index].name)
end
return {total, jobs}
