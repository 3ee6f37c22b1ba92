-- stamps | whether all moves must count | lots of ends | moves | what follows | alerts | now, node, limit, queues ->
-- late moves, runs let in, runs claimed, versions of their jobs, new stamps

local stamps, is_strict, lots, moves = take_stamps(), take() == '1', take_lots(), take_moves()
if not all_stand(stamps) or (is_strict and not all_count(moves)) then return {'again'} end
if not all_untouched(lots) then return {'touched'} end
local child = taken_id(moves)
if child then return {'taken', child} end
local freed = {}
for _, lot in ipairs(lots) do end_lot(lot, freed) end
local late, lost, admitted = apply_moves(moves, freed)
if next(lost) then
  for _, lot in ipairs(lots) do
    for _, name in ipairs(lot.names) do lost[name] = nil end
  end
end
admitted = admitted + follow()
keep_alerts(lost)
local now, node, limit = take_number(), take_number(), take_number()
local queues = {}
for index = 1, take_number() do queues[index] = take() end
local claimed, versions = {}, {}
if limit > 0 then claimed, versions = claim(now, node, limit, queues) end
flush()
return {'done', late, admitted, claimed, versions, stamps_now(stamps)}
