-- queue, now, head starts of priorities 1 to 3, types | limit, holder, until, begun -> the items handed out; or, where
-- settings or objects have a say, nothing but how the queue stands: how often it was pulled from under them, its settings,
-- how many of its items are held, until when it is busy

local wish = take_wish()
local limit, holder, till, begun = take_number(), take(), take_number(), take_number()
local queue = wish.queue

local function governed()
  return {
    'governed',
    call('HGET', 'pulls', queue) or '0',
    call('HGET', 'settings', queue),
    call('ZCARD', 'out:' .. queue),
    call('ZSCORE', 'buckets', queue .. '\0'),
  }
end

if call('HEXISTS', 'settings', queue) == 1 then return governed() end
local runs = due_items(wish, limit, function() return 0 end)
for _, run in ipairs(runs) do
  local subject = subject_of(run)
  if subject and call('HEXISTS', 'objects', subject) == 1 then return governed() end
end
local items = hand_out(runs, holder, till, begun)
flush()
return {'done', items}
