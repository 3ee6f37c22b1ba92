-- now, limit -> runs of nodes that are gone or late, and runs whose deadline has passed

local now, limit = take_number(), take_number()
local live = {}
local nodes = call('HGETALL', 'nodes')
for index = 1, #nodes, 2 do
  if struct.unpack('<i8', nodes[index + 1]) > now then live[nodes[index]] = true end
end
local found, seen = {}, {}
local function look(names)
  for _, name in ipairs(names) do
    if not seen[name] and #found < limit then
      seen[name] = true
      found[#found + 1] = name
    end
  end
end
local holders = call('SMEMBERS', 'holders')
table.sort(holders, function(a, b) return tonumber(a) < tonumber(b) end)
for _, node in ipairs(holders) do
  if call('ZCARD', 'held:' .. node) == 0 then
    call('SREM', 'holders', node)
  elseif not live[node] and #found < limit then
    look(call('ZRANGE', 'held:' .. node, 0, limit - #found - 1))
  end
end
look(call('ZRANGEBYSCORE', 'deadlines', '-inf', now, 'LIMIT', 0, limit))
local runs = {}
for _, name in ipairs(found) do
  local run = get_run(name)
  append_run(runs, run, run.value)
end
return runs
