-- entries: those are kept that are not there

for _ = 1, take_number() do keep_entry(take(), take(), take()) end
write_changes()
