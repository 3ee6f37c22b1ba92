-- keys and values of alerts after their delivery: those count that were not leased, or settled, by another since

for _ = 1, take_number() do
  local key, new = take(), take()
  local old = call('HGET', 'alerts', key)
  if old then
    local _, _, attempts, state = struct.unpack(ALERT, old)
    local _, _, leased = struct.unpack(ALERT, new)
    if state == 'p' and attempts == leased then replace_alert(key, old, new) end
  end
end
flush()
