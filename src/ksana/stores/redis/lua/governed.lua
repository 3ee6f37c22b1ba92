-- What governs the queue: objects, settings and the audit. Values of the first two begin with their version.

local function version_in(name, field)
  local value = call('HGET', name, field)
  return value and (struct.unpack('<i8', value)) or 0
end

-- Objects are found by what items call them; in order they stand by type, then id.
local function take_objects()
  local objects = {}
  for index = 1, take_number() do
    objects[index] = {subject = take(), key = take(), due = take(), value = take()}
  end
  return objects
end

local function put_object(object)
  call('HSET', 'objects', object.subject, object.value)
  call('ZADD', 'objects:order', 0, object.key)
  if object.due == '' then
    call('ZREM', 'objects:due', object.key)
  else
    call('ZADD', 'objects:due', object.due, object.key)
  end
end

-- Whether each object comes just above the one that is there, or in front of it in the list.
local function all_on_top(objects)
  local versions = {}
  for _, object in ipairs(objects) do
    local version = (struct.unpack('<i8', object.value))
    if version ~= (versions[object.subject] or version_in('objects', object.subject)) + 1 then return false end
    versions[object.subject] = version
  end
  return true
end

-- A value of the audit begins with what it is about, and how long that is.
local function about_of(value)
  return string.sub(value, 5, 4 + struct.unpack('<I4', value))
end

local function keep_entry(id, at, value)
  if call('HSETNX', 'audit', id, value) == 0 then return false end
  enter('audit:order', id, id)
  enter('audit:at', id, at)
  enter('audit:of:' .. about_of(value), id, id)
  return true
end

-- `audit:at` is left to whoever walks along it.
local function forget_entry(id)
  leave('audit:order', id)
  leave('audit:of:' .. about_of(call('HGET', 'audit', id)), id)
  call('HDEL', 'audit', id)
end
