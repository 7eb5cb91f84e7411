-- SPDX-License-Identifier: Apache-2.0
-- A chain of DEPTH calls without end, with a millisecond of work in the innermost, for bench/runtimes_bench.

local function spin()
	local total = 0
	for i = 1, 100000 do
		total = total + i % 7
	end
	return total
end

local function dive(depth)
	if depth == 0 then
		return 1 + spin()
	end
	return 1 + dive(depth - 1)
end

while true do
	dive(tonumber(arg[1]))
end
