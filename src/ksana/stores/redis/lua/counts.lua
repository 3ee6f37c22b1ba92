-- now, unfinished states -> jobs by surface, unfinished runs by state, due runs, the oldest of them, dead letters

local now, states = take(), take()
local surfaces = call('SMEMBERS', 'surfaces')
local jobs, unfinished, dead = {}, {}, 0
for _, surface in ipairs(surfaces) do
  jobs[#jobs + 1] = surface
  jobs[#jobs + 1] = call('ZCARD', 'jobs:0' .. surface)
  jobs[#jobs + 1] = call('ZCARD', 'jobs:1' .. surface)
  for _, family in ipairs({'t:', 'c:'}) do dead = dead + call('ZCARD', 'state:d' .. family .. surface) end
end
for state in string.gmatch(states, '.') do
  local count = 0
  for _, surface in ipairs(surfaces) do
    for _, family in ipairs({'t:', 'c:'}) do count = count + call('ZCARD', 'state:' .. state .. family .. surface) end
  end
  unfinished[#unfinished + 1] = count
end
local due, oldest = 0, false
for _, queue in ipairs(call('SMEMBERS', 'queues')) do
  local there = 0
  for priority = 1, 3 do
    local key = 'ready:' .. priority .. ':' .. queue
    there = there + call('ZCARD', key)
    due = due + call('ZCOUNT', key, '-inf', now)
    local first = call('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
    if first[2] and (not oldest or tonumber(first[2]) < oldest) then oldest = tonumber(first[2]) end
  end
  if there == 0 then call('SREM', 'queues', queue) end
end
return {jobs, unfinished, due, oldest and plain(oldest) or false, dead}
