-- Items as they come to the queue.

-- Add one with the answer that keeps it from being added twice, or none; answer what was answered before, if anything.
local function add_item()
  local answer = take_answer()
  local value, input = take(), take()
  local before = answered(answer)
  if before then return before end
  keep_answer(answer)
  add_run(value, input)
  return ''
end
