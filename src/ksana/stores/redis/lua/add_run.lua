-- job, its version, active runs (negative if they do not matter) | answer | run -> what stands in the way, if anything

local id, version, active = take(), take(), take_number()
if call('GETRANGE', 'job:' .. id, 0, 7) ~= version then return {'again'} end
if active >= 0 and active_runs(id) ~= active then return {'again'} end
local answer = take_answer()
local before = answered(answer)
if before then return {'answered', before} end
local value, input = take(), take()
if not add_run(value, input) then return {'taken'} end
keep_answer(answer)
flush()
return {'done'}
