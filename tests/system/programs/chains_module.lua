-- A module that chains.lua requires: its chunk and its functions are another file's.
local module = {}

function module.work(leaf)
	local result = leaf()
	return result + 1
end

return module
