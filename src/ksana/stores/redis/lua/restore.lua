-- section | things, just as they are -> how many were new

local section, count = take(), take_number()
local passed = {}

-- Have ids handed out above this one.
local function pass_over(sequence, id)
  passed[sequence] = math.max(passed[sequence] or 0, id)
end

local restore = {}

function restore.keys()
  return call('HSETNX', 'keys', take(), take()) == 1
end

function restore.jobs()
  local id, value, resumes = take_number(), take(), take()
  pass_over('job', id)
  local ref = ref_of(read_job(value))
  if call('EXISTS', 'job:' .. plain(id)) == 1 or (ref and call('HEXISTS', 'refs', ref) == 1) then return false end
  add_job(id, value, resumes)
  return true
end

function restore.runs()
  local value, input = take(), take()
  local run = read_run(value)
  pass_over('run', run.id)
  -- A new node with the number of the one that held a run would keep it from ever being found as lapsed.
  if run.node >= 0 then pass_over('node', run.node) end
  return add_run(value, input)
end

function restore.attempts()
  local run, attempt = take(), take_attempt()
  if call('HEXISTS', 'attempts:' .. run, attempt.epoch) == 1 then return false end
  if call('EXISTS', 'run:' .. run) == 0 then enter('strays', run, run) end
  keep_attempt(run, attempt)
  return true
end

function restore.callbacks()
  local id, run, value = take(), take(), take()
  pass_over('callback', tonumber(id))
  return keep_callback(id, run, value)
end

function restore.progress()
  local run, value = take(), take()
  if call('HEXISTS', 'progress', run) == 1 then return false end
  keep_progress(run, value)
  return true
end

function restore.kept()
  local run, has_artifact, artifact, has_checkpoint, checkpoint = take(), take(), take(), take(), take()
  if call('ZSCORE', 'kept', run) then return false end
  if has_artifact == '1' then call('SET', 'artifact:' .. run, artifact) end
  if has_checkpoint == '1' then call('SET', 'checkpoint:' .. run, checkpoint) end
  enter('kept', run, run)
  return true
end

function restore.alerts()
  local key, value = take(), take()
  return add_alert(key, value)
end

restore.gaps = keep_gap

function restore.minutes()
  local key, value = take(), take()
  return shelve('minutes', key, value)
end

function restore.records()
  return keep_answer(take_answer())
end

function restore.objects()
  local object = {subject = take(), key = take(), due = take(), value = take()}
  if call('HEXISTS', 'objects', object.subject) == 1 then return false end
  put_object(object)
  return true
end

function restore.queues()
  return call('HSETNX', 'settings', take(), take()) == 1
end

function restore.audit()
  local id, at, value = take(), take(), take()
  pass_over('audit', tonumber(id))
  return keep_entry(id, at, value)
end

local new = 0
for _ = 1, count do
  if restore[section]() then new = new + 1 end
end
flush()
for sequence, id in pairs(passed) do
  if tonumber(call('HGET', 'ids', sequence) or 0) < id then call('HSET', 'ids', sequence, plain(id)) end
end
return new
