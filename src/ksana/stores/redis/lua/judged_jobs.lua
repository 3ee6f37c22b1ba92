-- ids -> of each job that is there, the same as due_jobs tells

local due = {}
for _ = 1, take_number() do
  local id = take()
  if call('EXISTS', 'job:' .. id) == 1 then judge(due, id) end
end
return due
