-- -> how many runs were let in

local admitted = 0
for _, job in ipairs(call('ZRANGE', 'lines', 0, -1)) do
  if call('ZCARD', 'line:' .. job) == 0 then
    call('ZREM', 'lines', job)
  else
    admitted = admitted + fill_slots(job)
  end
end
return admitted
