-- at, after_id, limit -> of each job with a higher id that comes due at this instant, the same as due_jobs tells

local at, after_id, limit = take(), take_number(), take_number()
local due = {}
for _, member in ipairs(call('ZRANGEBYSCORE', 'due', at, at)) do
  local id = unpadded(member)
  if tonumber(id) > after_id and #due < 3 * limit then judge(due, id) end
end
return due
