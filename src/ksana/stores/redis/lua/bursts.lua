-- after, until, least -> instants behind the first at which so many jobs come due, each with how many do

local after, till, least = take(), take(), take_number()
local found, count = {}, 0
local coming = call('ZRANGEBYSCORE', 'due', '(' .. after, till, 'WITHSCORES')
for index = 2, #coming, 2 do
  count = count + 1
  if coming[index + 2] ~= coming[index] then
    if count >= least then
      found[#found + 1] = coming[index]
      found[#found + 1] = count
    end
    count = 0
  end
end
return found
