-- Chains of calls that are known, for tests/system/lua_test: most of the time is spent in hotLeaf, at the end of the
-- chain that is asked for. For Lua 5.2 and later.
--
--   lua chains_plain.lua SHAPE SECONDS [GATE]

local clock = os.clock

local function hotLeaf()
	local sum = 0
	for i = 1, 3000 do -- HOT
		sum = sum + i % 7 -- HOT
	end -- HOT
	return sum
end

local function compare(a, b)
	local sum = hotLeaf()
	return a < b and sum > 0
end

local function inGsub(letter)
	local list = { 5, 3, 1, 4, 2 }
	table.sort(list, compare)
	return letter
end

local function callbacks()
	local text = string.gsub("abc", ".", inGsub)
	return text
end

local function dive(depth)
	if depth == 0 then
		local sum = 0
		for _ = 1, 60 do
			sum = sum + hotLeaf()
		end
		return sum
	end
	local sum = dive(depth - 1)
	return sum + 1
end

local function recursion()
	local sum = dive(150)
	return sum
end

local function handle(message)
	local sum = 0
	for _ = 1, 10 do
		sum = sum + hotLeaf()
	end
	return message .. sum
end

local function raise()
	error("known")
end

local function errors()
	local ok = xpcall(raise, handle)
	return ok
end

local function inside()
	for i = 1, 5 do
		local sum = hotLeaf()
		coroutine.yield(sum + i)
	end
end

local function outside()
	local inner = coroutine.wrap(inside)
	for _ = 1, 5 do
		inner()
	end
end

local function coroutines()
	local outer = coroutine.create(outside)
	local ok = coroutine.resume(outer)
	return ok
end

local sums = {}
sums.__add = function(a, b)
	local sum = a.missing
	return sum + b.number
end
sums.__index = function()
	local sum = hotLeaf()
	return sum
end

local function metamethods()
	local a = setmetatable({ number = 1 }, sums)
	local b = setmetatable({ number = 2 }, sums)
	return a + b
end

local Account = {}
Account.__index = Account

function Account:add()
	local sum = hotLeaf()
	self.sum = sum
end

local function methods()
	local account = setmetatable({}, Account)
	account:add()
end

local function each(_, i)
	local sum = hotLeaf()
	if i < 3 then
		return i + 1, sum
	end
end

local function iterators()
	for _ in each, nil, 0 do
	end
end

local holder = {
	member = function()
		local sum = hotLeaf()
		return sum
	end,
}

local function fields()
	local sum = holder.member()
	return sum
end

local function tail()
	return hotLeaf()
end

local function tails()
	local sum = tail()
	return sum
end

local function fib(n) -- HOT
	if n < 2 then -- HOT
		return n -- HOT
	end
	return fib(n - 1) + fib(n - 2) -- HOT
end

local function small()
	local sum = fib(22)
	return sum
end

local shapes = {
	callbacks = callbacks, recursion = recursion, errors = errors, coroutines = coroutines,
	metamethods = metamethods, methods = methods, iterators = iterators, fields = fields, tails = tails, small = small,
}
local shape = shapes[arg[1]]

if arg[3] then
	local gate = assert(io.open(arg[3]))
	gate:read("*a")
	gate:close()
end

local ends = clock() + tonumber(arg[2])
while clock() < ends do
	shape()
end
