-- ids -> the runs that are there

local runs = {}
for index = 1, #ARGV do
  local run = get_run(ARGV[index])
  if run then append_run(runs, run, run.value) end
end
return runs
