-- before, now, limit -> whether there is more to forget of gaps, answers, alerts and the audit; buckets that are no longer
-- busy and lapsed nodes go, too

local before, now, limit = take(), take_number(), take()
local more = 0

local function old(key)
  local found = call('ZRANGEBYSCORE', key, '-inf', '(' .. before, 'LIMIT', 0, limit)
  if #found == tonumber(limit) then more = 1 end
  return found
end

local function each(key, forget)
  local found = old(key)
  for _, member in ipairs(found) do
    leave(key, member)
    forget(member)
  end
end

each('gaps:recorded', function(key)
  unshelve('gaps', key)
  leave('gaps:' .. plain(tonumber(string.sub(key, 1, 16))), key)
end)
each('answers:created', function(key) unshelve('answers', key) end)
each('alerts:ended', function(key)
  local hook, shown_as = split_alert(key)
  stand_alert(key, shown_as, hook, call('HGET', 'alerts', key), leave)
  unshelve('alerts', key)
end)
each('audit:at', forget_entry)
call('ZREMRANGEBYSCORE', 'buckets', '-inf', plain(now))

local nodes = call('HGETALL', 'nodes')
for index = 1, #nodes, 2 do
  local node = nodes[index]
  if struct.unpack('<i8', nodes[index + 1]) <= now and call('ZCARD', 'held:' .. node) == 0 then
    call('HDEL', 'nodes', node)
  end
end
for _, node in ipairs(call('SMEMBERS', 'takers')) do
  if call('HEXISTS', 'nodes', node) == 0 then
    call('DEL', 'taken:' .. node)
    call('SREM', 'takers', node)
  end
end
flush()
return more
