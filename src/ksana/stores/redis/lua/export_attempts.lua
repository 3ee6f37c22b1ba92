-- descending, run and epoch to go on behind, limit, most bytes | ranges of runs -> attempts in parts, and the last run
-- looked at if there are more

local LOOKED_AT = 2000

local descending = take() == '1'
local after_run, after_epoch, limit, most_bytes = take_number(), take_number(), take_number(), take_number()
local ranges = take_ranges()
local runs = merged(ranges, LOOKED_AT, descending)
local found, bytes, count, last = {}, 0, 0, nil

local function epochs_of(key)
  local epochs = {}
  for _, field in ipairs(call('HKEYS', key)) do
    if tonumber(field) then epochs[#epochs + 1] = tonumber(field) end
  end
  table.sort(epochs, descending and function(a, b) return a > b end or nil)
  return epochs
end

for index = 1, math.min(LOOKED_AT, #runs) do
  local run = runs[index]
  local key = 'attempts:' .. run.name
  local is_again = last and last.name == run.name
  for _, epoch in ipairs(is_again and {} or epochs_of(key)) do
    if run.id ~= after_run or epoch > after_epoch then
      local field = plain(epoch)
      for _, part in ipairs(ATTEMPT_PARTS) do bytes = bytes + call('HSTRLEN', key, field .. part) end
      if count == limit or (bytes > most_bytes and count > 0) then return {found, run.name} end
      count = count + 1
      found[#found + 1] = run.name
      found[#found + 1] = field
      for _, part in ipairs(ATTEMPT_PARTS) do found[#found + 1] = call('HGET', key, field .. part) end
    end
  end
  last = run
end
return {found, #runs >= LOOKED_AT and last.name or false}
