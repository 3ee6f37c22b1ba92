-- Jobs. A value begins with what scripts go by: version, cursor, limit, whether it is enabled or deleted, and how long
-- the names are that follow.

local JOB = '<i8i8i8i4c1I2I2I2'
local JOB_LENGTH = 35
local CURSOR_FIRST, CURSOR_LAST = 9, 24

local function read_job(value)
  local job, surface, ref, name, after = {value = value}
  job.version, job.slot, job.fire, job.limit, job.standing, surface, ref, name, after = struct.unpack(JOB, value)
  job.surface = string.sub(value, after, after + surface - 1)
  after = after + surface
  job.ref = string.sub(value, after, after + ref - 1)
  after = after + ref
  job.name = string.sub(value, after, after + name - 1)
  return job
end

local function ref_of(job)
  return job.standing ~= 'x' and job.ref ~= '' and job.surface .. '\0' .. job.ref or nil
end

local function stand_job(id, job, place)
  if job.fire ~= NONE then place('due', padded(id), plain(job.fire)) end
  if job.standing ~= 'x' then
    place('jobs:' .. job.standing .. job.surface, plain(id), plain(id))
    place('names', job.name .. '\0' .. padded(id), '0')
    if place == enter then register('surfaces', job.surface) end
  end
end

-- `resumes` is when a pause ends by itself, or empty.
local function put_job(id, value, resumes)
  local job = read_job(value)
  local ref = ref_of(job)
  if ref then call('HSET', 'refs', ref, plain(id)) end
  stand_job(id, job, enter)
  if resumes ~= '' then call('ZADD', 'pauses', resumes, padded(id)) end
  call('SET', 'job:' .. plain(id), value)
  return job
end

local function add_job(id, value, resumes)
  enter('jobs', plain(id), plain(id))
  put_job(id, value, resumes)
end

-- Gaps are kept once each; they are found by their job, and forgotten by when they were recorded.
local function keep_gap()
  local key, value, job, from, recorded = take(), take(), take(), take(), take()
  if not shelve('gaps', key, value) then return false end
  enter('gaps:' .. job, key, from)
  enter('gaps:recorded', key, recorded)
  return true
end

-- The answer to a request: its key, value and the instant by which it is forgotten (if it is), or an empty key. What was
-- answered before is answered again.
local function take_answer()
  local key = take()
  if key == '' then return nil end
  return {key = key, value = take(), created = take()}
end

local function answered(answer)
  return answer and call('HGET', 'answers', answer.key)
end

local function keep_answer(answer)
  if not answer or not shelve('answers', answer.key, answer.value) then return false end
  if answer.created ~= '' then enter('answers:created', answer.key, answer.created) end
  return true
end
