-- Runs: how one is read, where it stands, how it comes to be and how it goes.

local HEAD = '<c1c1i8i4i8i8i8i8i8i8i8i8i8i8i8Bc1Bi4i4I2I2I2I4B'
local MOVING = '<c1c1i8i4i8i8i8i8'
-- Where in a value things stand, counted from 1.
local EPOCH_AT, MOVING_LENGTH, ID_AT, DUE_AT, FLAGS_AT, TAIL_LENGTH_AT, NAME_AT = 3, 46, 55, 63, 105, 120, 125
local HAS_INPUT, HAS_TOKEN, HAS_STEP, HAS_HOLDER, HAS_SUBJECT = 1, 2, 4, 8, 16
local MINUTE = 60000000
-- Unfinished, and not waiting to be let in.
local UNDER_WAY = {S = true, R = true, Y = true, C = true, P = true}

local function read_run(value)
  local state, reason, epoch, attempt, node, started, deadline, ended, version, id, due, created, job, parent, slot,
    priority, trigger, flags, failures, reclaims, surface, queue, kind, tail, name, after = struct.unpack(HEAD, value)
  after = after + name
  local queue_at = after + surface
  local kind_at = queue_at + queue
  local tail_at = kind_at + kind
  -- All fields at once: a table that grows field by field is made anew each time it doubles.
  return {
    value = value,
    name = string.sub(value, NAME_AT, after - 1),
    state = state,
    reason = reason,
    epoch = epoch,
    attempt = attempt,
    node = node,
    started = started,
    deadline = deadline,
    ended = ended,
    id = id,
    due = due,
    created = created,
    job = job,
    parent = parent,
    slot = slot,
    priority = priority,
    trigger = trigger,
    flags = flags,
    surface = string.sub(value, after, queue_at - 1),
    queue = string.sub(value, queue_at, kind_at - 1),
    kind = string.sub(value, kind_at, tail_at - 1),
    tail = tail_at,
    error = tail_at + tail,
  }
end

-- The id of a run as text stands in its value, because formatting numbers is slow.
local function name_of(value)
  return string.sub(value, NAME_AT, NAME_AT - 1 + string.byte(value, NAME_AT - 1))
end

-- Values of runs as this script knows them: read ahead, or not yet written.
local known = {}

-- Read many runs with one command, for `get_run` to find.
local function read_ahead(names)
  for first = 1, #names, CHUNK do
    local last = math.min(first + CHUNK - 1, #names)
    local keys = {}
    for index = first, last do keys[#keys + 1] = P .. 'run:' .. names[index] end
    local found = redis.call('MGET', unpack(keys))
    for index = first, last do
      local name = names[index]
      known[name] = known[name] or found[index - first + 1] or nil
    end
  end
end

local function get_run(name)
  local value = known[name] or call('GET', 'run:' .. name)
  return value and read_run(value)
end

local function put_run(name, value)
  known[name] = value
  put('run:' .. name, value)
end

-- The run's value after what scripts change about it: all that moves, and its error only if that stays.
local function moved_value(run, keeps_error)
  local head = struct.pack(
    MOVING, run.state, run.reason, run.epoch, run.attempt, run.node, run.started, run.deadline, run.ended
  )
  return head .. string.sub(run.value, MOVING_LENGTH + 1, keeps_error and -1 or run.error - 1)
end

-- What a run has beside: its token, its step, its holder and, if it has one, its subject, one after the other.
local function beside(run)
  return string.match(string.sub(run.value, run.tail, run.error - 1), '^(%Z*)%z(%Z*)%z(%Z*)%z?(%Z*)$')
end

local function token_of(run)
  return (beside(run))
end

local function is_set(flags, flag)
  return math.floor(flags / flag) % 2 == 1
end

local function subject_of(run)
  if not is_set(run.flags, HAS_SUBJECT) then return nil end
  local _, _, _, subject = beside(run)
  return subject
end

local function append_run(list, run, value)
  list[#list + 1] = value
  list[#list + 1] = is_set(run.flags, HAS_INPUT) and call('GET', 'input:' .. run.name) or false
end

-- Minutes that are not summed up for good: what ended in each, by kind and state. What ends in one that was closed
-- before does not count any more.
local sums, rolled = {}

local function rolled_until()
  rolled = rolled or tonumber(call('HGET', 'standing', 'rolled') or NONE)
  return rolled
end

local function add_to_minute(kind, state, ended, count, busy, late)
  local minute = math.floor(ended / MINUTE) * MINUTE
  if minute < rolled_until() then return end
  local of_minute = sums[minute] or {}
  sums[minute] = of_minute
  local name = kind .. '\0' .. state
  local sum = of_minute[name]
  if not sum then
    sum = {0, 0, 0}
    of_minute[name] = sum
  end
  sum[1], sum[2], sum[3] = sum[1] + count, sum[2] + busy, sum[3] + late
end

local function tally(run, sign)
  local busy, late = 0, 0
  if run.started ~= NONE then
    busy, late = run.ended - run.started, math.max(0, run.started - run.due)
  end
  add_to_minute(run.kind, run.state, run.ended, sign, sign * busy, sign * late)
end

local function write_sum(key, name, sum)
  call('HINCRBY', key, name .. 'b', plain(sum[2]))
  call('HINCRBY', key, name .. 'l', plain(sum[3]))
  if call('HINCRBY', key, name .. 'n', plain(sum[1])) == 0 then
    call('HDEL', key, name .. 'n', name .. 'b', name .. 'l')
  end
end

local function flush_sums()
  for minute, of_minute in pairs(sums) do
    local key = 'open:' .. plain(minute)
    for name, sum in pairs(of_minute) do write_sum(key, name, sum) end
    if call('EXISTS', key) == 1 then
      enter('open', plain(minute), plain(minute))
    else
      leave('open', plain(minute))
    end
  end
  sums = {}
end

-- Families that have moved on: what somebody worked out from an older stamp is not to be trusted. A chain does not tell
-- apart what is under way.
local stale = {}

local function class_of(state)
  return UNDER_WAY[state] and 'U' or state
end

local function note_move(run, state, reason)
  if run.parent >= 0 and class_of(run.state) ~= class_of(state) then stale[plain(run.parent)] = true end
  if run.reason == 'f' or reason == 'f' or run.state == 'P' or state == 'P' then stale[run.name] = true end
end

local function flush_stamps()
  for parent in pairs(stale) do call('INCR', 'stamp:' .. parent) end
  stale = {}
end

-- Where an unfinished run stands among those of its job.
local function stand_in_job(run, place, of_job)
  local name, is_apart = run.name, run.trigger == 'a'
  place('live:' .. of_job, name, name)
  if is_apart then place('apart:' .. of_job, name, name) end
  if run.state ~= 'W' then return end
  if not is_apart then place('idle:' .. of_job, name, name) end
  if run.reason == 's' then
    place('line:' .. of_job, padded(run.id), plain(run.created))
    if place == enter then enter('lines', of_job, of_job) end
  end
end

-- Where a run stands by what may change about it; `place` is `enter` or `leave`.
local function stand(run, place, stays_in_job)
  local name, state, job = run.name, run.state, run.job
  local group = state .. (run.parent < 0 and 't:' or 'c:') .. run.surface
  place('state:' .. group, name, name)
  if run.ended ~= NONE then
    place('ended:' .. group, name, plain(run.ended))
    if job >= 0 then place('final:' .. state .. plain(job), name, name) end
    tally(run, place == enter and 1 or -1)
  elseif job >= 0 and not stays_in_job then
    stand_in_job(run, place, plain(job))
  end
  if state == 'S' or state == 'Y' then
    local ready = run.priority .. ':' .. run.queue
    place('ready:' .. ready, padded(run.id), plain(run.due))
    if place == enter then register('queues', run.queue) end
    if run.kind == ITEM and is_set(run.flags, HAS_STEP) then
      local _, type = beside(run)
      place('typed:' .. ready .. '\0' .. type, padded(run.id), plain(run.due))
    end
  end
  if run.node >= 0 then
    local node = plain(run.node)
    place('held:' .. node, name, name)
    if place == enter then register('holders', node) end
  end
  if run.deadline ~= NONE then place('deadlines', name, plain(run.deadline)) end
  if state == 'R' and run.kind == ITEM then
    local subject = subject_of(run)
    place('out:' .. run.queue, name, name)
    if subject then place('out:' .. run.queue .. '\0' .. subject, name, name) end
  end
end

-- Slots taken by this very script, which the sets do not show yet.
local fresh_slots = {}

-- Add a run unless it, or one of its slot, is there.
local function add_run(value, input)
  local run = read_run(value)
  local key = 'run:' .. run.name
  local slots = run.job >= 0 and run.slot ~= NONE and 'slots:' .. plain(run.job)
  if slots then
    local fresh = fresh_slots[slots] or {}
    if fresh[run.slot] or call('ZCOUNT', slots, run.slot, run.slot) > 0 then return false end
    fresh_slots[slots], fresh[run.slot] = fresh, true
  end
  if not call('SET', key, value, 'NX') then return false end
  if is_set(run.flags, HAS_INPUT) then call('SET', 'input:' .. run.name, input) end
  if is_set(run.flags, HAS_TOKEN) then
    call('HSET', 'tokens', token_of(run), run.name)
  end
  if slots then enter(slots, run.name, plain(run.slot)) end
  if run.parent >= 0 then
    enter('children:' .. plain(run.parent), run.name, run.name)
    stale[plain(run.parent)] = true
  end
  local subject = subject_of(run)
  if subject then enter('about:' .. subject, run.name, run.name) end
  register('surfaces', run.surface)
  stand(run, enter)
  return run
end

-- What a script does to a run by itself: it goes to this state, and `change` sets what else moves.
local function change_run(run, state, change, keeps_error)
  touch(run.name)
  local before, reason = run.state, run.reason
  local stays_in_job = run.ended == NONE and before ~= 'W' and UNDER_WAY[state]
  stand(run, leave, stays_in_job)
  run.state, run.epoch = state, run.epoch + 1
  change(run)
  stand(run, enter, stays_in_job)
  note_move(run, before, reason)
  run.value = moved_value(run, keeps_error)
  put_run(run.name, run.value)
end
