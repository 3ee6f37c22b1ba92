-- answer | jobs -> what stands in the way of it, if anything does

local answer = take_answer()
local before = answered(answer)
if before then return {'answered', before} end
local jobs, refs = {}, {}
for index = 1, take_number() do
  local id, value, resumes = take_number(), take(), take()
  local job = read_job(value)
  local ref = ref_of(job)
  if call('EXISTS', 'job:' .. plain(id)) == 1 then return {'id', plain(id)} end
  if ref then
    if refs[ref] or call('HEXISTS', 'refs', ref) == 1 then return {'ref', job.ref} end
    refs[ref] = true
  end
  jobs[index] = {id, value, resumes}
end
for _, job in ipairs(jobs) do add_job(unpack(job)) end
keep_answer(answer)
flush()
return {'done'}
