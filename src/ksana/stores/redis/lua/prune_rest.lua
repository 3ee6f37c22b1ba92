-- before, now, limit -> how many went of the kind of which most went, of old gaps, answers, alerts and entries of the audit
-- and of buckets that are no longer busy, `limit` of each at most; lapsed nodes go, too

local before, now, limit = take(), take_number(), take()
local most = 0

local function each_until(key, last, forget)
  local found = call('ZRANGEBYSCORE', key, '-inf', last, 'LIMIT', 0, limit)
  most = math.max(most, #found)
  for _, member in ipairs(found) do
    leave(key, member)
    forget(member)
  end
end

local function each(key, forget)
  each_until(key, '(' .. before, forget)
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
each_until('buckets', plain(now), function() end)

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
return most
