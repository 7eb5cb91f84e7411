-- Chains of calls that are known, for tests/system/luajit_test and lua_test: most of the time is spent in hotLeaf, at
-- the end of the chain that is asked for. Functions are called what their callers call them by. For LuaJIT, and for
-- Lua 5.2 and later.
--
--   luajit chains.lua SHAPE SECONDS [GATE]

local clock = os.clock
local folder = arg[0]:match("^(.*)/") or "."
package.path = folder .. "/?.lua;" .. package.path

local function hotLeaf()
	local sum = 0
	for i = 1, 3000 do -- HOT
		sum = sum + i % 7 -- HOT
	end -- HOT
	return sum
end

-- ---- callbacks of functions in C ----

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

-- ---- depth ----

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
	local sum = dive(jit and 300 or 150)
	return sum
end

-- ---- errors ----

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

local function caught()
	local sum = hotLeaf()
	return sum
end

local function errors()
	local ok = xpcall(raise, handle)
	return ok
end

local function protected()
	local ok, sum = pcall(caught)
	return ok and sum
end

-- ---- coroutines ----

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

-- ---- metamethods ----

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

-- ---- arguments, tails, methods, iterators, names ----

local function variable(...)
	local sum = hotLeaf(...)
	return sum, ...
end

local function varargs()
	local sum = variable(1, 2, 3)
	return sum
end

local function tail()
	return hotLeaf()
end

local function tails()
	local sum = tail()
	return sum
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

-- LuaJIT alone takes letters beyond ASCII in names.
local names = jit and require("chains_names")(hotLeaf)

-- ---- functions in which machine code has no exit ----

local function flatLeaf(x)
	local y = x * 0.5 + 1.25
	y = y * 0.75 + x * 0.125 + 0.5
	y = y * y * 0.0625 + y * 0.25 + 0.25
	y = y * y * 0.0625 + y * 0.25 + 0.25
	y = y * y * 0.0625 + y * 0.25 + 0.25
	y = y * y * 0.0625 + y * 0.25 + 0.25
	return y / (1 + y * 0.5)
end

local function flat()
	local sum = 1.5
	for _ = 1, 3000 do
		sum = flatLeaf(sum) + 0.5
	end
	return sum
end

-- ---- other files, closures, small functions ----

local function modules()
	local module = require("chains_module")
	local sum = module.work(hotLeaf)
	return sum
end

local function closures()
	for i = 1, 10 do
		local moment = function()
			local sum = hotLeaf()
			return sum + i
		end
		moment()
	end
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

-- ---- C that calls back ----

local function foreign()
	local ffi = require("ffi")
	pcall(ffi.cdef, [[void qsort(int *, size_t, size_t, int (*)(const int *, const int *));]])
	local numbers = ffi.new("int[5]", { 5, 3, 1, 4, 2 })
	local callback = ffi.cast("int (*)(const int *, const int *)", function(a, b)
		local sum = hotLeaf()
		return a[0] < b[0] and sum > 0 and -1 or 1
	end)
	for _ = 1, 50 do
		ffi.C.qsort(numbers, 5, 4, callback)
	end
	callback:free()
end

local shapes = {
	callbacks = callbacks, recursion = recursion, errors = errors, protected = protected, coroutines = coroutines,
	metamethods = metamethods, varargs = varargs, tails = tails, methods = methods, iterators = iterators,
	fields = fields, names = names, modules = modules, closures = closures, flat = flat, small = small, foreign = foreign,
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
