-- now, limit -> of each due job its id, what it is judged by, and how many of its runs hold a slot

local now, limit = take(), take()
local due = {}
for _, member in ipairs(call('ZRANGEBYSCORE', 'due', '-inf', now, 'LIMIT', 0, limit)) do
  local id = unpadded(member)
  local head = call('GETRANGE', 'job:' .. id, 0, 27)
  due[#due + 1] = id
  due[#due + 1] = head
  due[#due + 1] = struct.unpack('<i4', head, 25) >= 0 and active_runs(id) or 0
end
return due
