-- What every script begins with: the arguments one after the other, and the changes of ordered sets, which wait until
-- `flush` writes those of one set with one command.

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

-- set -> member -> the score it is to have, as text, or false if it is to go. What leaves a set only to come back as it
-- was is not written at all.
local changes, scores_before, registered = {}, {}, {}

local function leave(key, member, score)
  local members, before = changes[key], scores_before[key]
  if not members then
    members, before = {}, {}
    changes[key], scores_before[key] = members, before
  end
  if members[member] == nil then before[member] = score end
  members[member] = false
end

local function enter(key, member, score)
  local members, before = changes[key], scores_before[key]
  if not members then
    members, before = {}, {}
    changes[key], scores_before[key] = members, before
  end
  if before[member] == score then members[member] = nil else members[member] = score end
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
  for key, members in pairs(changes) do
    local gone, there = {}, {}
    for member, score in pairs(members) do
      if score then
        there[#there + 1] = score
        there[#there + 1] = member
      else
        gone[#gone + 1] = member
      end
    end
    write_all('ZREM', key, gone)
    write_all('ZADD', key, there)
  end
  for key, names in pairs(registered) do
    local list = {}
    for name in pairs(names) do list[#list + 1] = name end
    write_all('SADD', key, list)
  end
  changes, scores_before, registered = {}, {}, {}
end

-- Rows in the order of their keys, each kept once: the hash has the values, the set the order.
local function shelve(name, key, value)
  if call('HSETNX', name, key, value) == 0 then return false end
  enter(name .. ':order', key, '0')
  return true
end

local function unshelve(name, key)
  call('HDEL', name, key)
  leave(name .. ':order', key, '0')
end
