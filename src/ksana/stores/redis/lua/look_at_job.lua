-- job -> its value, and how many of its unfinished runs hold a slot

local id = take()
return {call('GET', 'job:' .. id), active_runs(id)}
