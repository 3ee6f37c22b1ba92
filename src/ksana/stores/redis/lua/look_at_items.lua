-- queue, now, head starts, types | count | of each set, by priority and type, the due instant and the id of the last one
-- shown -> the next items, and what is known of their subjects: object, how many are held, until when they are busy

local wish, count = take_wish(), take_number()

local function behind(key)
  local due, member = take(), take()
  if due == '' then return 0 end
  if tonumber(call('ZSCORE', key, member) or NONE) == tonumber(due) then return call('ZRANK', key, member) + 1 end
  -- It went away meanwhile, so all of its instant is shown again.
  return call('ZCOUNT', key, '-inf', '(' .. due)
end

local values, known, told = {}, {}, {}
for index, run in ipairs(due_items(wish, count, behind)) do
  values[index] = run.value
  local subject = subject_of(run)
  if subject and not told[subject] then
    told[subject] = true
    local bucket = wish.queue .. '\0' .. subject
    known[#known + 1] = subject
    known[#known + 1] = call('HGET', 'objects', subject)
    known[#known + 1] = call('ZCARD', 'out:' .. bucket)
    known[#known + 1] = call('ZSCORE', 'buckets', bucket)
  end
end
return {values, known}
