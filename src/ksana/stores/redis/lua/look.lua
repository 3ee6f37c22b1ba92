-- runs | parents, each with the stamp at which it is known -> epochs of the runs; of each parent its stamp and itself, and
-- of one that is not known its plan, its first child and the states of all its children

local epochs, families = {}, {}
for index = 1, take_number() do
  local value = call('GETRANGE', 'run:' .. take(), 2, 9)
  epochs[index] = value ~= '' and struct.unpack('<i8', value) or -1
end
for index = 1, take_number() do
  local parent, known = take(), take()
  local stamp, value = stamp_of(parent), call('GET', 'run:' .. parent)
  local family = {stamp, value}
  if value and stamp ~= known then
    local names, states = call('ZRANGE', 'children:' .. parent, 0, -1), {}
    for place, name in ipairs(names) do states[place] = call('GETRANGE', 'run:' .. name, 0, 0) end
    family[3], family[4], family[5] = call('GET', 'input:' .. parent), names[1] or false, table.concat(states)
  end
  families[index] = family
end
return {epochs, families}
