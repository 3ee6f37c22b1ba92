-- items, each with the answer that keeps it from being added twice, or none -> for each the answer given before, if any

local before = {}
for index = 1, take_number() do
  local answer = take_answer()
  local value, input = take(), take()
  before[index] = answered(answer) or ''
  if before[index] == '' then
    keep_answer(answer)
    add_run(value, input)
  end
end
flush()
return before
