-- SPDX-License-Identifier: Apache-2.0
-- Work of ten kinds, each of a known share of the CPU time, for bench/profilers_bench.
--
--   luajit mix.lua SECONDS PROFILE     PROFILE: folded stacks, of jit.profile
local profile = require("jit.profile")

local function numbers()
	local total = 0
	for i = 1, 300000 do
		total = total + i * i % 7
	end
	return total
end

local function longer(one, other)
	local total = 0
	for i = 1, 20 do
		total = total + i % 7
	end
	return one + 0 * total < other
end

local function sorting()
	local list = {}
	for i = 1, 500 do
		list[i] = i * 7919 % 10007
	end
	table.sort(list, longer)
	return list
end

local function strings()
	local text = ""
	for i = 1, 8000 do
		text = text .. string.char(97 + i % 26)
		if #text > 60 then
			text = text:gsub("ab", "ba"):upper():lower():sub(1, 30)
		end
	end
	return text
end

local function tables()
	local found = {}
	for i = 1, 20000 do
		found[i * 31 % 997] = (found[i % 997] or 0) + 1
	end
	return found
end

local function fib(n)
	if n < 2 then
		return n
	end
	return fib(n - 1) + fib(n - 2)
end

local function recursion()
	local result = fib(20)
	return result
end

local function closures()
	local adders = {}
	for i = 1, 10 do
		adders[i] = function(x)
			return x + i
		end
	end
	local total = 0
	for x = 1, 8000 do
		local sum = adders[x % 10 + 1](x)
		total = total + sum
	end
	return total
end

local Shape = {}
Shape.__index = Shape

function Shape.new(side)
	return setmetatable({ side = side }, Shape)
end

function Shape:area()
	return self.side * self.side
end

local function objects()
	local total = 0
	for i = 1, 20000 do
		local area = Shape.new(i):area()
		total = total + area
	end
	return total
end

local function patterns()
	local total = 0
	for _ = 1, 600 do
		local text = ("one-12 two-345 three-6"):gsub("(%w+)-(%d+)", "%2")
		for j = 1, 40 do
			total = total + #text % j
		end
	end
	return total
end

local function fail(i)
	local total = 0
	for j = 1, 100 do
		total = total + i % j
	end
	if i % 2 == 1 then
		error("odd")
	end
	return total
end

local function errors()
	local total = 0
	for i = 1, 300 do
		local held = pcall(fail, i)
		for j = 1, 100 do
			total = total + (held and j or 0)
		end
	end
	return total
end

local function copies()
	local total = 0
	for i = 1, 200 do
		local row = {}
		for j = 1, 200 do
			row[j] = i + j
		end
		total = total + #table.concat(row, ",")
	end
	return total
end

-- A function is called what its caller calls it by.
local kinds = {
	{ "numbers", 22, function() return 1 + numbers() end },
	{ "sorting", 17, function() return #sorting() end },
	{ "strings", 13, function() return #strings() end },
	{ "tables", 11, function() return #tables() end },
	{ "recursion", 9, function() return 1 + recursion() end },
	{ "closures", 8, function() return 1 + closures() end },
	{ "objects", 7, function() return 1 + objects() end },
	{ "patterns", 6, function() return 1 + patterns() end },
	{ "errors", 4, function() return 1 + errors() end },
	{ "copies", 3, function() return 1 + copies() end },
}

local function work(seconds)
	local used = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
	local begun = os.clock()
	local last = begun
	while last - begun < seconds do
		local next = 1
		for i = 2, #used do
			if used[i] / kinds[i][2] < used[next] / kinds[next][2] then
				next = i
			end
		end
		local kind = kinds[next][3]
		local result = kind()
		local now = os.clock()
		used[next] = used[next] + now - last
		last = now
	end
	return used
end

local stacks = {}
-- By lines, at which traces then keep their positions.
profile.start("li2", function(thread, samples, state)
	local stack = profile.dumpstack(thread, "pF;", -100) .. " " .. state
	stacks[stack] = (stacks[stack] or 0) + samples
end)
local used = work(tonumber(arg[1]))
profile.stop()

local out = io.open(arg[2], "w")
for stack, count in pairs(stacks) do
	out:write(stack, " ", count, "\n")
end
out:close()
for i, kind in ipairs(kinds) do
	print(kind[1], used[i])
end
