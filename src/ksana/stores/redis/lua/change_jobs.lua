-- changes | stamps | children that will be canceled, with their epochs | what follows -> what stands in the way of them, or
-- the runs canceled and new stamps

local RESTING = {W = true, S = true, Y = true}

local function take_change()
  local change = {id = take_number(), version = take_number(), value = take(), resumes = take()}
  change.cursor, change.moves = take(), take() == '1'
  change.cancels, change.reason, change.now, change.has_gap = take(), take(), take_number(), take() == '1'
  if change.has_gap then
    change.gap = taken
    taken = taken + 5
  end
  return change
end

local changes_asked = {}
for index = 1, take_number() do changes_asked[index] = take_change() end

for _, change in ipairs(changes_asked) do
  local value = call('GET', 'job:' .. plain(change.id))
  if not value then return {'absent', plain(change.id)} end
  change.old = read_job(value)
  if change.old.version ~= change.version then
    return {'version', plain(change.id), plain(change.old.version), plain(change.version)}
  end
  if change.cursor ~= '' and change.cursor ~= string.sub(value, CURSOR_FIRST, CURSOR_FIRST + 7) then
    return {'cursor', plain(change.id)}
  end
end

-- Refs are given up and taken one change after the other.
local refs = {}
for _, change in ipairs(changes_asked) do
  local new = read_job(change.value)
  local before, after, name = ref_of(change.old), ref_of(new), plain(change.id)
  local owner = after and refs[after]
  if after and owner == nil then owner = call('HGET', 'refs', after) end
  if owner and owner ~= name then return {'ref', new.ref} end
  if before then refs[before] = false end
  if after then refs[after] = name end
end

-- Children that are about to be canceled mean something for their families, which must have been worked out.
local stamps, expected = take_stamps(), {}
for index = 1, 2 * take_number() do expected[index] = take() end

local function leaves(run, change)
  return string.find(change.cancels, run.state, 1, true) ~= nil
end

local found, children = {}, {}
for _, change in ipairs(changes_asked) do
  local names = change.cancels ~= '' and call('ZRANGE', 'live:' .. plain(change.id), 0, -1) or {}
  for _, name in ipairs(names) do
    local run = get_run(name)
    if run.parent >= 0 and leaves(run, change) then
      found[#found + 1] = name
      found[#found + 1] = plain(run.epoch)
      append_run(children, run, run.value)
    end
  end
end
if table.concat(found, ' ') ~= table.concat(expected, ' ') or not all_stand(stamps) then
  return {'family', children}
end

local function follow_job(run, change, version, canceled)
  local rests = RESTING[run.state]
  if rests then
    run.value = string.sub(run.value, 1, MOVING_LENGTH) .. version .. string.sub(run.value, MOVING_LENGTH + 9)
  end
  if leaves(run, change) then
    change_run(run, 'c', function()
      run.reason, run.node, run.deadline, run.ended = change.reason, -1, NONE, change.now
    end, false)
    append_run(canceled, run, run.value)
  elseif rests then
    put_run(run.name, run.value)
  end
end

local followers, canceled, changed = taken, {}, {}
for _, change in ipairs(changes_asked) do
  local id, old, value = change.id, change.old, change.value
  -- An earlier change of this batch may have moved it.
  old = read_job(call('GET', 'job:' .. plain(id)))
  if not change.moves then
    local cursor = string.sub(old.value, CURSOR_FIRST, CURSOR_LAST)
    value = string.sub(value, 1, CURSOR_FIRST - 1) .. cursor .. string.sub(value, CURSOR_LAST + 1)
  end
  local ref = ref_of(old)
  if ref and call('HGET', 'refs', ref) == plain(id) then call('HDEL', 'refs', ref) end
  stand_job(id, old, leave)
  call('ZREM', 'pauses', padded(id))
  put_job(id, value, change.resumes)
  if change.has_gap then
    taken = change.gap
    keep_gap()
  end
  flush()
  for _, name in ipairs(call('ZRANGE', 'live:' .. plain(id), 0, -1)) do
    follow_job(get_run(name), change, string.sub(value, 1, 8), canceled)
  end
  changed[plain(id)] = true
end
flush()
taken = followers
follow()
for job in pairs(changed) do fill_slots(job) end
flush()
return {'done', canceled, stamps_now(stamps)}
