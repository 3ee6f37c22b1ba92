-- node, until -> what is said of it if it is there, and what was taken from it

local node, till = take(), take()
local value = call('HGET', 'nodes', node)
if value then call('HSET', 'nodes', node, till .. string.sub(value, 9)) end
local news = call('SMEMBERS', 'taken:' .. node)
if #news > 0 then
  call('DEL', 'taken:' .. node)
  call('SREM', 'takers', node)
end
return {value and string.sub(value, 9), news}
