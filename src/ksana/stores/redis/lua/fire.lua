-- fires -> of each, which of its runs were added; nothing of one whose job is not any more as it was judged

local done = {}
for index = 1, take_number() do
  local id, head, active, cursor = take(), take(), take_number(), take()
  local runs, gaps = take_number(), take_number()
  local key = 'job:' .. id
  local limit = struct.unpack('<i4', head, 25)
  if call('GETRANGE', key, 0, 27) == head and (limit < 0 or active_runs(id) == active) then
    local added = {}
    for run = 1, runs do
      local value, input = take(), take()
      added[run] = add_run(value, input) and '1' or '0'
    end
    for _ = 1, gaps do keep_gap() end
    local old, new = struct.unpack('<i8', head, 17), struct.unpack('<i8', cursor, 9)
    if old ~= NONE then leave('due', padded(tonumber(id))) end
    if new ~= NONE then enter('due', padded(tonumber(id)), plain(new)) end
    call('SETRANGE', key, 8, cursor)
    done[index] = 'done' .. table.concat(added)
  else
    taken = taken + 2 * runs + 5 * gaps
    done[index] = 'again'
  end
end
flush()
return done
