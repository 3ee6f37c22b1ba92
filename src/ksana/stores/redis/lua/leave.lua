-- node: it goes, with what it has yet to hear

local node = take()
call('HDEL', 'nodes', node)
call('DEL', 'taken:' .. node)
call('SREM', 'takers', node)
