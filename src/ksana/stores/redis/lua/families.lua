-- What follows for families: worked out beforehand, and right only if every family still has the stamp it had then and
-- every move counts that was taken to.

local function take_stamps()
  local stamps = {}
  for index = 1, take_number() do stamps[index] = {parent = take(), stamp = take()} end
  return stamps
end

local function stamp_of(parent)
  return call('GET', 'stamp:' .. parent) or '0'
end

local function all_stand(stamps)
  for _, one in ipairs(stamps) do
    if stamp_of(one.parent) ~= one.stamp then return false end
  end
  return true
end

local function all_count(moves)
  local epochs = {}
  for _, move in ipairs(moves) do
    local name = name_of(move.value)
    local epoch = epochs[name]
    if not epoch then
      local stored = get_run(name)
      epoch = stored and stored.epoch
    end
    if epoch ~= move.epoch then return false end
    epochs[name] = struct.unpack('<i8', move.value, EPOCH_AT)
  end
  return true
end

-- The first child of a branch whose id is taken, if there is one.
local function taken_id(moves)
  for _, move in ipairs(moves) do
    local run = move.children and get_run(name_of(move.value))
    if run and run.epoch == move.epoch then
      for _, child in ipairs(move.children) do
        local name = name_of(child.value)
        if call('EXISTS', 'run:' .. name) == 1 then return name end
      end
    end
  end
end

local function admit(name, now)
  change_run(get_run(name), 'S', function(run)
    run.reason, run.due, run.deadline = '-', now, NONE
    run.value = string.sub(run.value, 1, DUE_AT - 1) .. struct.pack('<i8', now) .. string.sub(run.value, DUE_AT + 8)
  end, false)
end

local function skip(name, now)
  change_run(get_run(name), 'k', function(run)
    run.reason, run.node, run.deadline, run.ended = 'd', -1, NONE, now
  end, false)
end

-- Do what follows; answer how many runs were let in.
local function follow()
  local admitted = 0
  for _ = 1, take_number() do
    local now = take_number()
    for _ = 1, take_number() do
      admit(take(), now)
      admitted = admitted + 1
    end
    for _ = 1, take_number() do skip(take(), now) end
  end
  local _, _, let = apply_moves(take_moves())
  return admitted + let
end

local function stamps_now(stamps)
  local now = {}
  for index, one in ipairs(stamps) do now[index] = stamp_of(one.parent) end
  return now
end
