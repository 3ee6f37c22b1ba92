-- node, what is said of it -> whether it is there

local node, told = take(), take()
local value = call('HGET', 'nodes', node)
if not value then return 0 end
call('HSET', 'nodes', node, string.sub(value, 1, 8) .. told)
return 1
