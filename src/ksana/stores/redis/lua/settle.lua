-- stamps | moves | objects | what follows | alerts | items | entries of the audit -> whether it counted, and new stamps

local stamps, moves, objects = take_stamps(), take_moves(), take_objects()
if not all_stand(stamps) then return {'again'} end
if not all_count(moves) or not all_on_top(objects) then return {'late'} end
local child = taken_id(moves)
if child then return {'taken', child} end
apply_moves(moves)
follow()
keep_alerts({})
for _, object in ipairs(objects) do put_object(object) end
for _ = 1, take_number() do add_item() end
for _ = 1, take_number() do keep_entry(take(), take(), take()) end
flush()
return {'done', stamps_now(stamps)}
