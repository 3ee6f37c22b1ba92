-- runs, each with an attempt: those are kept whose run is there and has no attempt of that epoch

for _ = 1, take_number() do
  local run, attempt = take(), take_attempt()
  if call('EXISTS', 'run:' .. run) == 1 and call('HEXISTS', 'attempts:' .. run, attempt.epoch) == 0 then
    keep_attempt(run, attempt)
  end
end
flush()
