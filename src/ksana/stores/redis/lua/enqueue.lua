-- items, each with the answer that keeps it from being added twice, or none -> for each the answer given before, if any

local before = {}
for index = 1, take_number() do before[index] = add_item() end
flush()
return before
