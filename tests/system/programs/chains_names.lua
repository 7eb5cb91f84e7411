-- A function of chains.lua whose name other Luas cannot read.

return function(hotLeaf)
	local function größe()
		local sum = hotLeaf()
		return sum
	end

	return function()
		local sum = größe()
		return sum
	end
end
