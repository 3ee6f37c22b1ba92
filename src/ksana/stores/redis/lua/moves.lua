-- Moves of runs, and the slots that they free.

local ATTEMPT_PARTS = {'', 'q', 'p'}

local attempts_kept = 0

local function flush()
  flush_sums()
  flush_stamps()
  write_changes()
  if attempts_kept ~= 0 then call('HINCRBY', 'tallies', 'attempts', attempts_kept) end
  attempts_kept = 0
end

-- An attempt: its epoch, what is told of it, what was sent and what came back. Nothing is said by an empty text.
local function take_attempt()
  local epoch = take()
  if epoch == '' then return nil end
  return {epoch = epoch, take(), take(), take()}
end

local function keep_told(name, epoch, told)
  attempts_kept = attempts_kept + call('HSET', 'attempts:' .. name, epoch, told)
end

local function keep_attempt(name, attempt)
  if attempt[2] == '' and attempt[3] == '' then return keep_told(name, attempt.epoch, attempt[1]) end
  local fields = {}
  for part, suffix in ipairs(ATTEMPT_PARTS) do
    if attempt[part] ~= '' then
      fields[#fields + 1] = attempt.epoch .. suffix
      fields[#fields + 1] = attempt[part]
    end
  end
  if call('HSET', 'attempts:' .. name, unpack(fields)) > 0 then attempts_kept = attempts_kept + 1 end
end

local function take_children()
  local children = {}
  for index = 1, take_number() do children[index] = {value = take(), input = take()} end
  return children
end

-- What a move brings along beside its run: a branch, and what is kept of the run.
local function take_more(move)
  if take() == '0' then return move end
  move.more = true
  if take() == '1' then move.artifact = take() end
  if take() == '1' then move.checkpoint = take() end
  if take() == '1' then move.input = take() end
  if take() == '1' then move.plan, move.children = take(), take_children() end
  return move
end

local function take_moves()
  local moves = {}
  for index = 1, take_number() do
    moves[index] = take_more({
      epoch = take_number(),
      value = take(),
      frees = take() == '1',
      taken_from = take(),
      attempt = take_attempt(),
    })
  end
  return moves
end

local function keep_more(name, move)
  if move.artifact then call('SET', 'artifact:' .. name, move.artifact) end
  if move.checkpoint then call('SET', 'checkpoint:' .. name, move.checkpoint) end
  if move.artifact or move.checkpoint then enter('kept', name, name) end
  if move.input then call('SET', 'input:' .. name, move.input) end
  if move.plan then
    call('SET', 'input:' .. name, move.plan)
    for _, child in ipairs(move.children) do add_run(child.value, child.input) end
  end
end

-- The value of a run after a move. The version follows the job without a move, and the input is what it was: the one that
-- moves may not know of them.
local function value_after(move, old)
  local version = string.sub(old, MOVING_LENGTH + 1, MOVING_LENGTH + 8)
  local value = move.value
  if string.sub(value, MOVING_LENGTH + 1, MOVING_LENGTH + 8) ~= version then
    value = string.sub(value, 1, MOVING_LENGTH) .. version .. string.sub(value, MOVING_LENGTH + 9)
  end
  local before, after = string.byte(old, FLAGS_AT), string.byte(value, FLAGS_AT)
  if before % 2 ~= after % 2 and not move.plan and not move.input then
    local flags = string.char(after - after % 2 + before % 2)
    value = string.sub(value, 1, FLAGS_AT - 1) .. flags .. string.sub(value, FLAGS_AT + 1)
  end
  return value
end

-- Make a move if its run is still where it starts from.
local function apply(move)
  local value = move.value
  local run = get_run(name_of(value))
  if not run or run.epoch ~= move.epoch then return nil end
  touch(run.name)
  local state, reason, stored = run.state, run.reason, run.value
  local stays_in_job = UNDER_WAY[state] and UNDER_WAY[string.sub(value, 1, 1)]
  stand(run, leave, stays_in_job)
  run.state, run.reason, run.epoch, run.attempt, run.node, run.started, run.deadline, run.ended =
    struct.unpack(MOVING, value)
  run.due = struct.unpack('<i8', value, DUE_AT)
  stand(run, enter, stays_in_job)
  note_move(run, state, reason)
  put_run(run.name, value_after(move, stored))
  if move.attempt then keep_attempt(run.name, move.attempt) end
  if move.taken_from ~= '' then
    call('SADD', 'taken:' .. move.taken_from, run.name .. ':' .. plain(move.epoch))
    register('takers', move.taken_from)
  end
  if move.more then keep_more(run.name, move) end
  return run
end

local function limit_of(job)
  local head = call('GETRANGE', 'job:' .. job, 24, 27)
  return head ~= '' and struct.unpack('<i4', head) or nil
end

local function active_runs(job)
  return call('ZCARD', 'live:' .. job) - call('ZCARD', 'apart:' .. job)
end

local function let_in(run)
  run.reason = '-'
end

-- Let the longest-waiting runs of a job in, as far as its limit allows; answer how many.
local function fill_slots(job)
  local waiting = call('ZCARD', 'line:' .. job)
  local limit = waiting > 0 and limit_of(job)
  if not limit then return 0 end
  local free = waiting
  if limit >= 0 then free = math.max(0, limit - (active_runs(job) - call('ZCARD', 'idle:' .. job))) end
  if free == 0 then return 0 end
  local admitted = call('ZRANGE', 'line:' .. job, 0, free - 1)
  for _, member in ipairs(admitted) do
    change_run(get_run(unpadded(member)), 'S', let_in, true)
  end
  if #admitted == waiting then leave('lines', job) end
  flush()
  return #admitted
end

-- Apply moves that follow each other by epoch, and fill the slots they free beside those of `freed`. Answer which of them
-- came too late, the runs of which no move counted, and how many runs were let in.
local function apply_moves(moves, freed)
  local late, lost, admitted = {}, {}, 0
  local names = {}
  for index, move in ipairs(moves) do names[index] = name_of(move.value) end
  read_ahead(names)
  freed = freed or {}
  for index, move in ipairs(moves) do
    local run = apply(move)
    if run then
      lost[run.name] = nil
      if move.frees and run.job >= 0 then freed[plain(run.job)] = true end
    else
      late[#late + 1] = index - 1
      lost[names[index]] = true
    end
  end
  flush()
  for job in pairs(freed) do admitted = admitted + fill_slots(job) end
  return late, lost, admitted
end
