-- stamps | whether all moves must count | moves | what follows | alerts | now, node, limit, queues ->
-- late moves, runs let in, runs claimed, versions of their jobs, new stamps

local function due_runs(now, limit, queues)
  local due = {}
  for priority = 3, 1, -1 do
    local left = limit - #due
    if left > 0 then
      local found = {}
      for _, queue in ipairs(queues) do
        local key = 'ready:' .. priority .. ':' .. queue
        local members = call('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, left)
        for index = 1, #members, 2 do
          found[#found + 1] = {member = members[index], due = tonumber(members[index + 1])}
        end
      end
      if #queues > 1 then
        table.sort(found, function(a, b)
          if a.due ~= b.due then return a.due < b.due end
          return a.member < b.member
        end)
      end
      for index = 1, math.min(left, #found) do due[#due + 1] = found[index].member end
    end
  end
  return due
end

local function claim(now, node, limit, queues)
  local claimed, jobs, versions = {}, {}, {}
  local function begin(run)
    run.reason, run.attempt = '-', run.attempt + 1
    run.node, run.deadline, run.ended = node, NONE, NONE
    if run.started == NONE then run.started = now end
  end
  for _, member in ipairs(due_runs(now, limit, queues)) do
    local run = get_run(unpadded(member))
    padded_texts[run.id] = member
    change_run(run, 'R', begin, false)
    append_run(claimed, run, run.value)
    if run.job >= 0 and not jobs[run.job] then
      jobs[run.job] = true
      local version = call('GETRANGE', 'job:' .. plain(run.job), 0, 7)
      if version ~= '' then
        versions[#versions + 1] = run.job
        versions[#versions + 1] = (struct.unpack('<i8', version))
      end
    end
  end
  return claimed, versions
end

local stamps, is_strict, moves = take_stamps(), take() == '1', take_moves()
if not all_stand(stamps) or (is_strict and not all_count(moves)) then return {'again'} end
local child = taken_id(moves)
if child then return {'taken', child} end
local late, lost, admitted = apply_moves(moves)
admitted = admitted + follow()
keep_alerts(lost)
local now, node, limit = take_number(), take_number(), take_number()
local queues = {}
for index = 1, take_number() do queues[index] = take() end
local claimed, versions = {}, {}
if limit > 0 then claimed, versions = claim(now, node, limit, queues) end
flush()
return {'done', late, admitted, claimed, versions, stamps_now(stamps)}
