-- queue, pulls, version of its settings, holder, until, begun | subjects with the versions of their objects | items with
-- their epochs | objects that change | buckets that fill -> the items handed out; nothing if it rests on what is no longer so

local queue, pulls, version = take(), take(), take_number()
local holder, till, begun = take(), take_number(), take_number()
local stands = (call('HGET', 'pulls', queue) or '0') == pulls and version_in('settings', queue) == version
for _ = 1, take_number() do
  local subject, known = take(), take_number()
  if stands and version_in('objects', subject) ~= known then stands = false end
end
local runs = {}
for index = 1, take_number() do
  local run, epoch = get_run(take()), take_number()
  if not run or run.epoch ~= epoch then stands = false end
  runs[index] = run
end
if not stands then return {'again'} end

local items = hand_out(runs, holder, till, begun)
for _, object in ipairs(take_objects()) do put_object(object) end
for _ = 1, take_number() do
  local subject, busy = take(), take()
  enter('buckets', queue .. '\0' .. subject, busy)
end
call('HINCRBY', 'pulls', queue, 1)
flush()
return {'done', items}
