-- What every script begins with: the arguments one after the other, and the changes of ordered sets and of values, which
-- wait until those of one set, and all values, are written with one command.

local P = KEYS[1]
local NONE = -9223372036854775808
local CHUNK = 1000

local taken = 0

local function take()
  taken = taken + 1
  return ARGV[taken]
end

local function take_number()
  taken = taken + 1
  return tonumber(ARGV[taken])
end

local function call(command, key, ...)
  return redis.call(command, P .. key, ...)
end

-- Numbers as text: plain for ids and scores, padded for ids of one score that must stand in order. Formatting costs more
-- than looking up, and the same numbers come again and again.
local plain_texts, padded_texts = {}, {}

local function plain(number)
  local text = plain_texts[number]
  if not text then
    text = string.format('%.0f', number)
    plain_texts[number] = text
  end
  return text
end

local function padded(id)
  local text = padded_texts[id]
  if not text then
    text = string.format('%016.0f', id)
    padded_texts[id] = text
  end
  return text
end

local function unpadded(member)
  return string.match(member, '[1-9]%d*') or '0'
end

-- set -> members that are to go, and scores with members that are to come. The first are written first, which is right as
-- long as nothing is touched twice in between.
local going, coming, touched, registered = {}, {}, {}, {}

local function leaving(key)
  local members = going[key]
  if not members then
    members = {}
    going[key] = members
  end
  return members
end

local function entering(key)
  local members = coming[key]
  if not members then
    members = {}
    coming[key] = members
  end
  return members
end

local function leave(key, member)
  local members = leaving(key)
  members[#members + 1] = member
end

local function enter(key, member, score)
  local members = entering(key)
  local last = #members
  members[last + 1] = score
  members[last + 2] = member
end

-- Keys with the values that are to stand there; of one that is named twice, the last.
local values = {}

local function put(key, value)
  local last = #values
  values[last + 1] = P .. key
  values[last + 2] = value
end

-- Names of which there are few, such as queues: written once.
local function register(key, name)
  registered[key] = registered[key] or {}
  registered[key][name] = true
end

local function write_all(command, key, list)
  for first = 1, #list, CHUNK do
    call(command, key, unpack(list, first, math.min(first + CHUNK - 1, #list)))
  end
end

local function write_changes()
  for first = 1, #values, CHUNK do redis.call('MSET', unpack(values, first, math.min(first + CHUNK - 1, #values))) end
  for key, members in pairs(going) do write_all('ZREM', key, members) end
  for key, members in pairs(coming) do write_all('ZADD', key, members) end
  for key, names in pairs(registered) do
    local list = {}
    for name in pairs(names) do list[#list + 1] = name end
    write_all('SADD', key, list)
  end
  going, coming, touched, registered, values = {}, {}, {}, {}, {}
end

-- About to move something from one place to another: what was done to it before must be written first.
local function touch(name)
  if touched[name] then write_changes() end
  touched[name] = true
end

-- Rows in the order of their keys, each kept once: the hash has the values, the set the order.
local function shelve(name, key, value)
  if call('HSETNX', name, key, value) == 0 then return false end
  enter(name .. ':order', key, '0')
  return true
end

local function unshelve(name, key)
  call('HDEL', name, key)
  leave(name .. ':order', key)
end
