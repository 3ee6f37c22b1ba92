-- state and surface, how many to pass over, before, newest to keep, limit -> runs forgotten, runs kept, whether that is all

local WINDOW = 500
local FINAL = 'sftckmd'
local DEAD = 'd'

local group, start, before, keep, limit = take(), take_number(), take(), take_number(), take_number()

-- The lowest id among the newest runs of a job; nothing if it has no more than those.
local lowest = {}

local function lowest_kept(job)
  if lowest[job] then return lowest[job] end
  local ids = {}
  local function look(key)
    for _, name in ipairs(call('ZREVRANGE', key, 0, keep - 1)) do ids[#ids + 1] = tonumber(name) end
  end
  look('live:' .. job)
  for state in string.gmatch(FINAL, '.') do look('final:' .. state .. job) end
  table.sort(ids, function(a, b) return a > b end)
  lowest[job] = ids[keep] or -1
  return lowest[job]
end

local function forget_attempts(run)
  local key = 'attempts:' .. run.name
  for _, field in ipairs(call('HKEYS', key)) do
    if tonumber(field) then attempts_kept = attempts_kept - 1 end
  end
  call('UNLINK', key)
end

local function forget_callbacks(run)
  local key = 'ledger:' .. run.name
  for _, id in ipairs(call('HKEYS', key)) do leave('callbacks', id .. ':' .. run.name) end
  call('UNLINK', key)
  if call('HDEL', 'progress', run.name) == 1 then leave('progress:order', run.name) end
end

-- Drop a run with all that was said of it.
local function forget(run)
  stand(run, leave)
  if is_set(run.flags, HAS_TOKEN) then call('HDEL', 'tokens', token_of(run)) end
  if run.job >= 0 and run.slot ~= NONE then leave('slots:' .. plain(run.job), run.name) end
  if run.parent >= 0 then leave('children:' .. plain(run.parent), run.name) end
  local subject = subject_of(run)
  if subject then leave('about:' .. subject, run.name) end
  forget_attempts(run)
  forget_callbacks(run)
  leave('kept', run.name)
  local others = {}
  for index, key in ipairs({'input:', 'artifact:', 'checkpoint:', 'stamp:'}) do others[index] = P .. key .. run.name end
  call('UNLINK', 'run:' .. run.name, unpack(others))
end

-- A child goes with its parent; a dead letter waits for a person, and its family with it.
local function forget_family(run)
  local members = {run}
  local index = 1
  while members[index] do
    for _, name in ipairs(call('ZRANGE', 'children:' .. members[index].name, 0, -1)) do
      local child = get_run(name)
      if child.state == DEAD then return false end
      members[#members + 1] = child
    end
    index = index + 1
  end
  for _, member in ipairs(members) do forget(member) end
  return true
end

local gone, kept = 0, 0
local names = call('ZRANGEBYSCORE', 'ended:' .. group, '-inf', '(' .. before, 'LIMIT', start, WINDOW)
for _, name in ipairs(names) do
  if gone == limit then break end
  local run = get_run(name)
  local is_among_newest = keep > 0 and run.job >= 0 and run.id >= lowest_kept(plain(run.job))
  if not is_among_newest and forget_family(run) then
    gone = gone + 1
  else
    kept = kept + 1
  end
end
flush()
return {gone, kept, #names < WINDOW and 1 or 0}
