-- Ends by success, in lots that are alike: runs that nobody has touched since a node claimed them at one instant, settled
-- at one instant. Nothing changes about such a run but what its value begins with, and where it stands is known without
-- looking into it, so all there is to do for each is to see that it is what it was taken for.

local JOB_AT = 79

-- A lot: what stored values begin with and shall begin with, epoch, surface, kind, state, node, ended, time spent and
-- lateness in all, whether slots are freed, how many; then of each its name and what is told of its attempt.
local function take_lots()
  local lots = {}
  for index = 1, take_number() do
    local lot = {
      before = take(),
      after = take(),
      epoch = take(),
      surface = take(),
      kind = take(),
      state = take(),
      node = take(),
      ended = take_number(),
      busy = take_number(),
      late = take_number(),
      frees = take() == '1',
      count = take_number(),
      first = taken + 1,
    }
    taken = taken + 2 * lot.count
    lots[index] = lot
  end
  return lots
end

-- Whether every run of every lot is what it was taken for.
local function all_untouched(lots)
  for _, lot in ipairs(lots) do
    local names = {}
    for index = 1, lot.count do names[index] = ARGV[lot.first + 2 * index - 2] end
    read_ahead(names)
    lot.names = names
    for _, name in ipairs(names) do
      local stored = known[name]
      if not stored or string.sub(stored, 1, MOVING_LENGTH) ~= lot.before then return false end
    end
  end
  return true
end

local function end_lot(lot, freed)
  local state, ended, group, after = lot.state, plain(lot.ended), 't:' .. lot.surface, lot.after
  local running, held = leaving('state:R' .. group), leaving('held:' .. lot.node)
  local over, by_end = entering('state:' .. state .. group), entering('ended:' .. state .. group)
  local job, live, final
  for index, name in ipairs(lot.names) do
    local stored = known[name]
    local of = (struct.unpack('<i8', stored, JOB_AT))
    if of ~= job then
      job = of
      local text = plain(job)
      live, final = leaving('live:' .. text), entering('final:' .. state .. text)
      if lot.frees then freed[text] = true end
    end
    running[#running + 1], held[#held + 1], live[#live + 1] = name, name, name
    local last = #over
    over[last + 1], over[last + 2] = name, name
    last = #by_end
    by_end[last + 1], by_end[last + 2] = ended, name
    last = #final
    final[last + 1], final[last + 2] = name, name
    touched[name] = true
    put_run(name, after .. string.sub(stored, MOVING_LENGTH + 1))
    keep_told(name, lot.epoch, ARGV[lot.first + 2 * index - 1])
  end
  add_to_minute(lot.kind, state, lot.ended, lot.count, lot.busy, lot.late)
end
