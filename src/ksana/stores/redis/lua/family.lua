-- parent -> its stamp, itself and its children

local parent = take()
local runs = {}
local run = get_run(parent)
if run then append_run(runs, run, run.value) end
for _, name in ipairs(call('ZRANGE', 'children:' .. parent, 0, -1)) do
  local child = get_run(name)
  append_run(runs, child, child.value)
end
return {call('GET', 'stamp:' .. parent) or '0', runs}
