/* SPDX-License-Identifier: Apache-2.0 */
#include "base/regex.h"

#include <map>
#include <new>
#include <stdio.h>
#include <string.h>
#include <string>

#include <re2/re2.h>

struct regex {
	RE2 re;
	uint64_t size;
	regex(const re2::StringPiece &pattern, const RE2::Options &options)
	    : re(pattern, options), size(re.ok() ? (uint64_t)re.ProgramSize() : 0)
	{
	}
};

/* RE2 accepts \C (any byte), which can split UTF-8; Go and so Prometheus do not. */
static bool has_any_byte_escape(const char *pattern, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++) {
		if (pattern[i] != '\\')
			continue;
		if (pattern[i + 1] == 'C')
			return true;
		i++;
	}
	return false;
}

extern "C" struct regex *regex_new(const char *pattern, size_t pattern_len, bool ignore_case,
				   char *error, size_t error_bytes)
{
	RE2::Options options(RE2::Quiet);
	struct regex *made;

	if (pattern_len > REGEX_PATTERN_BYTES_MAX || has_any_byte_escape(pattern, pattern_len)) {
		snprintf(error, error_bytes, "%s",
			 pattern_len > REGEX_PATTERN_BYTES_MAX ? "pattern is too long"
							       : "\\C is not supported");
		return nullptr;
	}
	options.set_dot_nl(true);
	options.set_case_sensitive(!ignore_case);
	options.set_max_mem(1 << 20);
	made = new (std::nothrow) regex(re2::StringPiece(pattern, pattern_len), options);
	if (made && made->re.ok())
		return made;
	snprintf(error, error_bytes, "%s", made ? made->re.error().c_str() : "out of memory");
	delete made;
	return nullptr;
}

extern "C" void regex_free(struct regex *regex)
{
	delete regex;
}

extern "C" bool regex_matches_whole(const struct regex *regex, const char *text, size_t len)
{
	return regex->re.Match(re2::StringPiece(text, len), 0, len, RE2::ANCHOR_BOTH, nullptr, 0);
}

extern "C" bool regex_matches_part(const struct regex *regex, const char *text, size_t len)
{
	return regex->re.Match(re2::StringPiece(text, len), 0, len, RE2::UNANCHORED, nullptr, 0);
}

extern "C" uint32_t regex_steps(const struct regex *regex, size_t len)
{
	uint64_t steps = 0;

	if (__builtin_mul_overflow(regex->size, (uint64_t)len, &steps) || steps > UINT32_MAX)
		return UINT32_MAX;
	return (uint32_t)steps;
}

static bool capture(const struct regex *regex, const char *text, size_t len, size_t from,
		    RE2::Anchor anchor, struct regex_group *groups, size_t count)
{
	re2::StringPiece found[REGEX_GROUPS_MAX];
	int wanted = 1 + regex->re.NumberOfCapturingGroups();

	if (wanted > (int)count)
		wanted = (int)count;
	if (wanted > REGEX_GROUPS_MAX)
		wanted = REGEX_GROUPS_MAX;
	if (!regex->re.Match(re2::StringPiece(text, len), from, len, anchor, found, wanted))
		return false;
	for (size_t i = 0; i < count; i++) {
		bool has = (int)i < wanted && found[i].data();

		groups[i] = { has ? found[i].data() : nullptr, has ? found[i].size() : 0 };
	}
	return true;
}

extern "C" bool regex_capture_whole(const struct regex *regex, const char *text, size_t len,
				    struct regex_group *groups, size_t count)
{
	return capture(regex, text, len, 0, RE2::ANCHOR_BOTH, groups, count);
}

extern "C" bool regex_find(const struct regex *regex, const char *text, size_t len, size_t from,
			   struct regex_group *groups, size_t count)
{
	return capture(regex, text, len, from, RE2::UNANCHORED, groups, count);
}

extern "C" int regex_group_named(const struct regex *regex, const char *name, size_t len)
{
	const std::map<std::string, int> &named = regex->re.NamedCapturingGroups();
	std::map<std::string, int>::const_iterator found = named.find(std::string(name, len));

	return found == named.end() ? -1 : found->second;
}
