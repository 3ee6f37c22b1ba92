-- most bytes (negative: any), runs -> of each run its id, and the parts of its newest attempt

local most_bytes = take_number()
local found = {}
for _ = 1, take_number() do
  local run = take()
  local key = 'attempts:' .. run
  local epoch
  for _, field in ipairs(call('HKEYS', key)) do
    local number = tonumber(field)
    if number and (not epoch or number > epoch) then epoch = number end
  end
  if epoch then
    epoch = plain(epoch)
    local bytes = call('HSTRLEN', key, epoch .. 'q') + call('HSTRLEN', key, epoch .. 'p')
    local is_whole = most_bytes < 0 or bytes <= most_bytes
    found[#found + 1] = run
    found[#found + 1] = epoch
    local told = call('HGET', key, epoch)
    found[#found + 1] = told
    found[#found + 1] = is_whole and call('HGET', key, epoch .. 'q') or false
    -- What came back may be the result, too, which is never left out.
    local wants_body = is_whole or string.sub(told, 1, 1) == 'r'
    found[#found + 1] = wants_body and call('HGET', key, epoch .. 'p') or false
    found[#found + 1] = is_whole and 1 or 0
  end
end
return found
