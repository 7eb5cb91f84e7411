/* SPDX-License-Identifier: Apache-2.0 */
/* Much code of the C++ library: templates, inlined calls many deep, exceptions, threads. */
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace
{
struct visitor {
	std::ostream &out;
	void operator()(int value) const
	{
		out << "int " << value;
	}
	void operator()(const std::string &value) const
	{
		out << "text " << value;
	}
	void operator()(const std::vector<double> &value) const
	{
		out << std::accumulate(value.begin(), value.end(), 0.0);
	}
};

template <typename Key, typename Value> class table
{
	std::map<Key, Value> ordered;
	std::unordered_map<Key, Value> hashed;

      public:
	explicit table(std::initializer_list<std::pair<const Key, Value>> items)
	    : ordered(items), hashed(items.begin(), items.end())
	{
	}
	virtual ~table() = default;
	virtual std::optional<Value> find(const Key &key) const
	{
		auto at = hashed.find(key);
		return at == hashed.end() ? std::nullopt : std::optional<Value>(at->second);
	}
	template <typename Function> void each(Function function) const
	{
		for (auto &[key, value] : ordered)
			function(key, value);
	}
};

template <size_t Depth> struct nest {
	static int run(int value)
	{
		return nest<Depth - 1>::run(value * 3 + static_cast<int>(Depth)) + 1;
	}
};
template <> struct nest<0> {
	static int run(int value)
	{
		return value ^ 0x55;
	}
};

class failure : public std::runtime_error
{
	using std::runtime_error::runtime_error;
};

[[gnu::noinline]] void fails(int value)
{
	if (value > 2)
		throw failure("value " + std::to_string(value));
}
} // namespace

static int words(const std::string &text)
{
	static const std::regex word("([a-z]+)([0-9]*)|(x.*y)");
	std::set<std::string> seen;

	for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at)
		seen.insert((*at)[1].str());
	return static_cast<int>(seen.size());
}

int main(int argc, char **argv)
{
	table<std::string, int> names{ { "one", 1 }, { "two", 2 } };
	table<int, std::vector<double>> numbers{ { 1, { 1.0, 2.0 } }, { 2, { 3.0 } } };
	std::vector<std::variant<int, std::string, std::vector<double>>> mixed{
		argc, argv[0], std::vector<double>{ 1.5 }
	};
	std::mt19937 random(argc);
	std::vector<int> values(1000);
	std::ostringstream out;

	std::generate(values.begin(), values.end(),
		      [&] { return nest<20>::run(static_cast<int>(random())); });
	std::sort(values.begin(), values.end(), [](int a, int b) { return (a ^ 7) < (b ^ 7); });
	std::stable_sort(values.begin(), values.end(), std::greater<>());
	for (auto &value : mixed)
		std::visit(visitor{ out }, value);
	names.each(
		[&](auto &key, auto value) { out << key << value << names.find(key).value_or(0); });
	numbers.each([&](auto key, auto &value) { out << key << value.size(); });
	std::thread([&] {
		out << words("ab12 cd34 xzzy") << std::filesystem::current_path();
	}).join();
	try {
		fails(argc + 2);
	} catch (const failure &error) {
		out << error.what();
	}
	std::cout << out.str().size() << '\n';
	return 0;
}
