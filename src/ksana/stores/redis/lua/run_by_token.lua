-- token -> its run, if there is one

local runs = {}
local name = call('HGET', 'tokens', take())
local run = name and get_run(name)
if run then append_run(runs, run, run.value) end
return runs
