-- run, epoch, checkpoint -> whether it was kept

local name, epoch, checkpoint = take(), take_number(), take()
local run = get_run(name)
if not run or run.epoch ~= epoch then return 0 end
call('SET', 'checkpoint:' .. name, checkpoint)
enter('kept', name, name)
flush()
return 1
