// SPDX-License-Identifier: Apache-2.0
// One unit of the program that huge_bench makes: eight instances of many templates.
#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>
namespace part_PART
{
template <int N> struct key {
	long value;
	std::string text;
	bool operator<(const key &other) const
	{
		return value < other.value || (value == other.value && text < other.text);
	}
	bool operator==(const key &other) const
	{
		return value == other.value && text == other.text;
	}
};
template <int N> struct hash {
	size_t operator()(const key<N> &k) const
	{
		return std::hash<std::string>()(k.text) + k.value;
	}
};
template <int N> long work(long seed)
{
	std::map<key<N>, std::vector<key<N>>> tree;
	std::unordered_map<key<N>, std::shared_ptr<std::set<key<N>>>, hash<N>> table;
	std::deque<std::function<long(const key<N> &)>> calls;
	std::variant<key<N>, std::string, std::vector<long>> either;
	for (long i = 0; i < seed; i++) {
		key<N> k{ i * N % 17, std::to_string(i) };
		tree[k].push_back(k);
		auto &entry = table[k];
		if (!entry)
			entry = std::make_shared<std::set<key<N>>>();
		entry->insert(k);
		calls.push_back([k](const key<N> &other) { return k.value + other.value; });
		either = k;
	}
	std::vector<key<N>> all;
	for (auto &[k, v] : tree) {
		all.insert(all.end(), v.begin(), v.end());
	}
	std::stable_sort(all.begin(), all.end(),
			 [](const key<N> &a, const key<N> &b) { return b < a; });
	long sum = std::visit([](auto &&x) { return (long)sizeof(x); }, either);
	for (auto &k : all)
		for (auto &c : calls)
			sum += c(k);
	std::ostringstream out;
	for (auto &[k, v] : table)
		out << k.text << v->size();
	return sum + (long)out.str().size();
}
long run(long seed)
{
	return work<PART * 8 + 0>(seed) + work<PART * 8 + 1>(seed) + work<PART * 8 + 2>(seed) +
	       work<PART * 8 + 3>(seed) + work<PART * 8 + 4>(seed) + work<PART * 8 + 5>(seed) +
	       work<PART * 8 + 6>(seed) + work<PART * 8 + 7>(seed);
}
} // namespace part_PART
