-- Claiming due runs for a node.

-- What a claim goes by: all that moves, job, parent, trigger and flags, and how long the names are.
local CLAIMED = MOVING .. string.rep('x', 32) .. 'i8i8' .. string.rep('x', 11) .. string.rep('x', 8) .. 'I2I2I2I4'

-- Due runs by priority, then due instant, then id: the members, and of each the set it is in.
local function due_runs(now, limit, queues)
  local due, places = {}, {}
  for priority = 3, 1, -1 do
    local left = limit - #due
    if left > 0 then
      local found = {}
      for _, queue in ipairs(queues) do
        local key = 'ready:' .. priority .. ':' .. queue
        local members = call('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, left)
        for index = 1, #members, 2 do
          found[#found + 1] = {member = members[index], due = tonumber(members[index + 1]), place = key}
        end
      end
      if #queues > 1 then
        table.sort(found, function(a, b)
          if a.due ~= b.due then return a.due < b.due end
          return a.member < b.member
        end)
      end
      for index = 1, math.min(left, #found) do
        due[#due + 1], places[#places + 1] = found[index].member, found[index].place
      end
    end
  end
  return due, places
end

local function claim(now, node, limit, queues)
  local claimed, jobs, versions = {}, {}, {}
  local heads, holder = {}, plain(node)
  local held = 'held:' .. holder

  local function begin(run)
    run.reason, run.attempt = '-', run.attempt + 1
    run.node, run.deadline, run.ended = node, NONE, NONE
    if run.started == NONE then run.started = now end
  end

  -- What the value of a claimed run begins with, which is the same for all that are claimed for the first time.
  local function head_after(epoch, attempt, started)
    if started ~= NONE then return struct.pack(MOVING, 'R', '-', epoch + 1, attempt + 1, node, started, NONE, NONE) end
    local of_epoch = heads[epoch] or {}
    heads[epoch] = of_epoch
    local head = of_epoch[attempt]
    if not head then
      head = struct.pack(MOVING, 'R', '-', epoch + 1, attempt + 1, node, now, NONE, NONE)
      of_epoch[attempt] = head
    end
    return head
  end

  local function note_version(job)
    if job < 0 or jobs[job] then return end
    jobs[job] = true
    local version = call('GETRANGE', 'job:' .. plain(job), 0, 7)
    if version ~= '' then
      versions[#versions + 1] = job
      versions[#versions + 1] = (struct.unpack('<i8', version))
    end
  end

  local due, places = due_runs(now, limit, queues)
  local names = {}
  for index, member in ipairs(due) do names[index] = unpadded(member) end
  read_ahead(names)
  for index, member in ipairs(due) do
    local name = names[index]
    local value = known[name]
    local state, reason, epoch, attempt, holds, started, deadline, _, job, parent, surface, queue, kind, tail, after =
      struct.unpack(CLAIMED, value)
    after = after + 1 + #name
    local kind_at = after + surface + queue
    -- Most runs are of no family, nobody has a hold on them and they are no items: they stand in two sets.
    if parent < 0 and holds < 0 and deadline == NONE and reason ~= 'f'
      and string.sub(value, kind_at, kind_at + kind - 1) ~= ITEM
    then
      touch(name)
      local group = 't:' .. string.sub(value, after, after + surface - 1)
      leave(places[index], member)
      leave('state:' .. state .. group, name)
      enter('state:R' .. group, name, name)
      enter(held, name, name)
      value = head_after(epoch, attempt, started) .. string.sub(value, MOVING_LENGTH + 1, kind_at + kind + tail - 1)
      put_run(name, value)
      claimed[#claimed + 1] = value
      claimed[#claimed + 1] = string.byte(value, FLAGS_AT) % 2 == 1 and call('GET', 'input:' .. name) or false
    else
      local run = read_run(value)
      padded_texts[run.id] = member
      change_run(run, 'R', begin, false)
      append_run(claimed, run, run.value)
    end
    note_version(job)
  end
  if #due > 0 then register('holders', holder) end
  return claimed, versions
end
