-- queues -> when the first claimable run of them is due

local first
for index = 1, #ARGV do
  for priority = 1, 3 do
    local member = call('ZRANGE', 'ready:' .. priority .. ':' .. ARGV[index], 0, 0)[1]
    local run = member and get_run(unpadded(member))
    if run and (not first or run.due < first.due) then first = run end
  end
end
return first and string.sub(first.value, 63, 70)
