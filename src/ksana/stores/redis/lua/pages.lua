-- Pages over several ordered sets at once: ranges of scores, merged by score and then by id.

local function take_ranges()
  local ranges = {}
  for index = 1, take_number() do
    ranges[index] = {key = take(), low = take(), high = take()}
  end
  return ranges
end

local function merged(ranges, count, descending)
  local found = {}
  for _, range in ipairs(ranges) do
    local names
    if descending then
      names = call('ZREVRANGEBYSCORE', range.key, range.high, range.low, 'WITHSCORES', 'LIMIT', 0, count)
    else
      names = call('ZRANGEBYSCORE', range.key, range.low, range.high, 'WITHSCORES', 'LIMIT', 0, count)
    end
    for index = 1, #names, 2 do
      found[#found + 1] = {name = names[index], score = tonumber(names[index + 1]), id = tonumber(names[index])}
    end
  end
  local function before(a, b)
    if a.score ~= b.score then return a.score < b.score end
    return a.id < b.id
  end
  table.sort(found, descending and function(a, b) return before(b, a) end or before)
  return found
end
