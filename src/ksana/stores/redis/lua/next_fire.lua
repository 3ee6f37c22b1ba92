-- -> when the next job comes due

local member = call('ZRANGE', 'due', 0, 0)[1]
return member and call('GETRANGE', 'job:' .. unpadded(member), 16, 23)
