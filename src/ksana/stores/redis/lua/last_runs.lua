-- unfinished states, final states, jobs -> of each job its id and the run made last of those in one of the states

local NEWEST_LOOKED_AT = 8
local WINDOW = 100
local unfinished, final = take(), take()
local wanted = unfinished .. final

local function later(a, b)
  if not a or not b then return a or b end
  if a.created ~= b.created then return a.created > b.created and a or b end
  return a.id > b.id and a or b
end

local function latest(names, last)
  for _, name in ipairs(names) do
    local run = get_run(name)
    if string.find(wanted, run.state, 1, true) then last = later(last, run) end
  end
  return last
end

-- Nodes have blocks of ids, so the highest id of a state is nearly always the latest and not quite: a few are looked at,
-- and the latest slots.
local function last_of(job)
  local last = latest(call('ZREVRANGE', 'slots:' .. job, 0, NEWEST_LOOKED_AT - 1))
  for state in string.gmatch(final, '.') do
    last = latest(call('ZREVRANGE', 'final:' .. state .. job, 0, NEWEST_LOOKED_AT - 1), last)
  end
  if unfinished == '' then return last end
  local start, names, live = 0, nil, nil
  repeat
    names = call('ZREVRANGE', 'live:' .. job, start, start + WINDOW - 1)
    live = latest(names, live)
    start = start + WINDOW
  until live or #names < WINDOW
  return later(last, live)
end

local runs = {}
for _ = 1, take_number() do
  local last = last_of(take())
  if last then append_run(runs, last, last.value) end
end
return runs
