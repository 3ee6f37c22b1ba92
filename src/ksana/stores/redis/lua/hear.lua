-- stamps | a move or none | what follows | longest ledger or nothing | callback | progress or none | alerts ->
-- whether it counted, and new stamps

local stamps, moves = take_stamps(), take_moves()
if not all_stand(stamps) then return {'again'} end
if not all_count(moves) then return {'late'} end
apply_moves(moves)
follow()
local longest, id, run, value, progress = take(), take(), take(), take(), take()
if longest == '' or call('HLEN', 'ledger:' .. run) < tonumber(longest) then keep_callback(id, run, value) end
if progress ~= '' then keep_progress(run, progress) end
keep_alerts({})
flush()
return {'done', stamps_now(stamps)}
