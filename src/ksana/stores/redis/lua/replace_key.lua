-- key, its value before and after -> whether it was still as before

local id, old, new = take(), take(), take()
if call('HGET', 'keys', id) ~= old then return 0 end
call('HSET', 'keys', id, new)
return 1
