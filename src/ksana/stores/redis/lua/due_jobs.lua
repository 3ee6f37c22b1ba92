-- now, limit -> of each due job its id, what it is judged by, and how many of its runs hold a slot

local now, limit = take(), take()
local due = {}
for _, member in ipairs(call('ZRANGEBYSCORE', 'due', '-inf', now, 'LIMIT', 0, limit)) do
  judge(due, unpadded(member))
end
return due
