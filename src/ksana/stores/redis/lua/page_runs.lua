-- offset, limit, most bytes (0: any), descending | ranges that count | ranges of the page -> total, runs, whether that is all

local offset, limit, most_bytes, descending = take_number(), take_number(), take_number(), take() == '1'
local total = 0
for _, range in ipairs(take_ranges()) do total = total + call('ZCOUNT', range.key, range.low, range.high) end
local found = merged(take_ranges(), offset + limit + 1, descending)
local runs, is_all, bytes = {}, #found <= offset + limit, 0
for index = offset + 1, math.min(offset + limit, #found) do
  local run = get_run(found[index].name)
  if most_bytes > 0 then
    bytes = bytes + call('STRLEN', 'input:' .. run.name)
    if bytes > most_bytes and #runs > 0 then
      is_all = false
      break
    end
  end
  append_run(runs, run, run.value)
end
return {total, runs, is_all and 1 or 0}
