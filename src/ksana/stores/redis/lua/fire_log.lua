-- job, since, until, limit -> its runs with a slot in that range, and its gaps from before the end of it

local job, since, till, limit = take(), take(), take(), take()
local runs, gaps = {}, {}
for _, name in ipairs(call('ZREVRANGEBYSCORE', 'slots:' .. job, '(' .. till, since, 'LIMIT', 0, limit)) do
  runs[#runs + 1] = call('GET', 'run:' .. name)
end
for _, key in ipairs(call('ZREVRANGEBYSCORE', 'gaps:' .. job, '(' .. till, '-inf')) do
  gaps[#gaps + 1] = call('HGET', 'gaps', key)
end
return {runs, gaps}
