-- What a job is judged by when it comes due.

local function judge(found, id)
  local head = call('GETRANGE', 'job:' .. id, 0, 27)
  found[#found + 1] = id
  found[#found + 1] = head
  found[#found + 1] = struct.unpack('<i4', head, 25) >= 0 and active_runs(id) or 0
end
