-- Handing an item out to a worker.

-- The value with another holder: the length of what stands beside, and the flag, change with it.
local function held_value(run, holder)
  local token, step, _, subject = beside(run)
  local text = token .. '\0' .. step .. '\0' .. holder
  if is_set(run.flags, HAS_SUBJECT) then text = text .. '\0' .. subject end
  local flags = run.flags + (is_set(run.flags, HAS_HOLDER) and 0 or HAS_HOLDER)
  return string.sub(run.value, 1, FLAGS_AT - 1) .. string.char(flags)
    .. string.sub(run.value, FLAGS_AT + 1, TAIL_LENGTH_AT - 1) .. struct.pack('<I4', #text)
    .. string.sub(run.value, TAIL_LENGTH_AT + 4, run.tail - 1) .. text .. string.sub(run.value, run.error)
end

-- Hand runs out; answer them as they are then.
local function hand_out(runs, holder, till, begun)
  local function begin(run)
    run.reason, run.attempt = '-', run.attempt + 1
    run.node, run.deadline, run.ended = -1, till, NONE
    if run.started == NONE then run.started = begun end
  end
  local items = {}
  for _, run in ipairs(runs) do
    run.value = held_value(run, holder)
    run.error = run.tail + struct.unpack('<I4', run.value, TAIL_LENGTH_AT)
    change_run(run, 'R', begin, true)
    append_run(items, run, run.value)
  end
  return items
end
