-- queue, now, until, holder, limit, begun | head starts of priorities 1 to 3 | types -> the items handed out

local queue, now, till, holder, limit = take(), take_number(), take_number(), take(), take_number()
local begun = take_number()
local head_starts = {take_number(), take_number(), take_number()}
local types = {}
for index = 1, take_number() do types[index] = take() end

local found = {}

local function look(key, priority)
  local members = call('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
  for index = 1, #members, 2 do
    found[#found + 1] = {
      member = members[index],
      due = tonumber(members[index + 1]) - head_starts[priority],
      priority = priority,
    }
  end
end

for priority = 1, 3 do
  local ready = priority .. ':' .. queue
  if #types == 0 then look('ready:' .. ready, priority) end
  for _, type in ipairs(types) do look('typed:' .. ready .. '\0' .. type, priority) end
end
table.sort(found, function(a, b)
  if a.due ~= b.due then return a.due < b.due end
  if a.priority ~= b.priority then return a.priority > b.priority end
  return a.member < b.member
end)

-- The value with another holder: the length of what stands beside, and the flag, change with it.
local function held_value(run)
  local token, step = beside(run)
  local text = token .. '\0' .. step .. '\0' .. holder
  local flags = run.flags + (is_set(run.flags, HAS_HOLDER) and 0 or HAS_HOLDER)
  return string.sub(run.value, 1, FLAGS_AT - 1) .. string.char(flags)
    .. string.sub(run.value, FLAGS_AT + 1, TAIL_LENGTH_AT - 1) .. struct.pack('<I4', #text)
    .. string.sub(run.value, TAIL_LENGTH_AT + 4, run.tail - 1) .. text .. string.sub(run.value, run.error)
end

local function hand_out(run)
  run.reason, run.attempt = '-', run.attempt + 1
  run.node, run.deadline, run.ended = -1, till, NONE
  if run.started == NONE then run.started = begun end
end

local items = {}
for index = 1, math.min(limit, #found) do
  local run = get_run(unpadded(found[index].member))
  run.value = held_value(run)
  run.error = run.tail + struct.unpack('<I4', run.value, TAIL_LENGTH_AT)
  change_run(run, 'R', hand_out, true)
  append_run(items, run, run.value)
end
flush()
return items
