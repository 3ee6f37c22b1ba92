-- Items of a queue that are due, in the order in which they are handed out: by due instant, less the head start of their
-- priority, then priority, then id.

local function take_wish()
  local wish = {queue = take(), now = take_number(), head_starts = {take_number(), take_number(), take_number()}, types = {}}
  for index = 1, take_number() do wish.types[index] = take() end
  return wish
end

-- The next so many of a set; `first` says how many of it to pass over.
local function look(wish, found, key, priority, first, count)
  local members = call('ZRANGEBYSCORE', key, '-inf', wish.now, 'WITHSCORES', 'LIMIT', first, count)
  for index = 1, #members, 2 do
    found[#found + 1] = {
      member = members[index],
      due = tonumber(members[index + 1]) - wish.head_starts[priority],
      priority = priority,
    }
  end
end

-- The next `count` over all sets; `behind` says of each how many to pass over.
local function due_items(wish, count, behind)
  local found = {}
  for priority = 1, 3 do
    local ready = priority .. ':' .. wish.queue
    if #wish.types == 0 then look(wish, found, 'ready:' .. ready, priority, behind('ready:' .. ready), count) end
    for _, type in ipairs(wish.types) do
      local typed = 'typed:' .. ready .. '\0' .. type
      look(wish, found, typed, priority, behind(typed), count)
    end
  end
  table.sort(found, function(a, b)
    if a.due ~= b.due then return a.due < b.due end
    if a.priority ~= b.priority then return a.priority > b.priority end
    return a.member < b.member
  end)
  local runs = {}
  for index = 1, math.min(count, #found) do runs[index] = get_run(unpadded(found[index].member)) end
  return runs
end
