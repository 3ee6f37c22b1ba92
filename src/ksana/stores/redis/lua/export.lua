-- section, after, limit, most bytes -> keys with their values, and whether that is all

local section, after, limit, most_bytes = take(), take(), take_number(), take_number()

local function by_score(key)
  local low = after == '' and '-inf' or '(' .. after
  return call('ZRANGEBYSCORE', key, low, '+inf', 'LIMIT', 0, limit + 1)
end

local function by_key(key)
  local low = after == '' and '-' or '(' .. after
  return call('ZRANGEBYLEX', key, low, '+', 'LIMIT', 0, limit + 1)
end

local names, fetch
if section == 'jobs' then
  names = by_score('jobs')
  fetch = function(name) return call('GET', 'job:' .. name) end
elseif section == 'callbacks' then
  names = by_score('callbacks')
  fetch = function(name)
    local id, run = string.match(name, '(%d+):(%d+)')
    return call('HGET', 'ledger:' .. run, id)
  end
elseif section == 'progress' then
  names = by_score('progress:order')
  fetch = function(name) return call('HGET', 'progress', name) end
elseif section == 'kept' then
  names = by_score('kept')
  fetch = function(name)
    local artifact, checkpoint = call('GET', 'artifact:' .. name), call('GET', 'checkpoint:' .. name)
    return (artifact and '1' or '0') .. (checkpoint and '1' or '0')
      .. struct.pack('<I4', #(artifact or '')) .. (artifact or '') .. (checkpoint or '')
  end
elseif section == 'audit' then
  names = by_score('audit:order')
  fetch = function(name) return call('HGET', 'audit', name) end
elseif section == 'objects' then
  names = by_key('objects:order')
  fetch = function(name) return call('HGET', 'objects', (string.gsub(name, '%z', '/', 1))) end
else
  names = by_key(section .. ':order')
  fetch = function(name) return call('HGET', section, name) end
end

local found, bytes = {}, 0
for index = 1, math.min(limit, #names) do
  local value = fetch(names[index])
  bytes = bytes + #value
  if bytes > most_bytes and #found > 0 then return {found, 0} end
  found[#found + 1] = names[index]
  found[#found + 1] = value
end
return {found, #names <= limit and 1 or 0}
