-- queue, version below, settings, entry of the audit -> the version that is there, if it is another

local queue, version, value = take(), take_number(), take()
local stored = version_in('settings', queue)
if stored ~= version then return stored end
call('HSET', 'settings', queue, value)
keep_entry(take(), take(), take())
write_changes()
return false
