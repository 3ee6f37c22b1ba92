-- identity, summed up until (or nothing), sequences with their last ids -> whether that changed anything

local identity, rolled_to = take(), take()
local changed = 0
if call('HGET', 'standing', 'identity') ~= identity then
  call('HSET', 'standing', 'identity', identity)
  changed = 1
end
if rolled_to ~= '' and tonumber(rolled_to) > tonumber(call('HGET', 'standing', 'rolled') or NONE) then
  call('HSET', 'standing', 'rolled', rolled_to)
  changed = 1
end
for _ = 1, take_number() do
  local sequence, last = take(), take_number()
  local known = call('HGET', 'ids', sequence)
  if not known or tonumber(known) < last then
    call('HSET', 'ids', sequence, plain(last))
    if known or last > 0 then changed = 1 end
  end
end
return changed
