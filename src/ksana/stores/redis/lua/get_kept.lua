-- runs -> of those of which something is kept, the id, the artifact and the checkpoint

local found = {}
for index = 1, #ARGV do
  local name = ARGV[index]
  local artifact, checkpoint = call('GET', 'artifact:' .. name), call('GET', 'checkpoint:' .. name)
  if artifact or checkpoint then
    found[#found + 1] = name
    found[#found + 1] = artifact
    found[#found + 1] = checkpoint
  end
end
return found
