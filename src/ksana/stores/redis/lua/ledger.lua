-- Callbacks and progress: by run, and in the order in which they are copied.

local function keep_callback(id, run, value)
  if call('HSETNX', 'ledger:' .. run, id, value) == 0 then return false end
  enter('callbacks', id .. ':' .. run, id)
  return true
end

local function keep_progress(run, value)
  call('HSET', 'progress', run, value)
  enter('progress:order', run, run)
end
