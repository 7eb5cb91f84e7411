/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/select/match.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/regex.h"
#include "model/service.h"

enum { UNKNOWN, FITS_NOT, FITS };

bool match_init(struct match *match, const struct selector *selector,
		const struct tables_view *view, struct arena *arena)
{
	assert(!selector || selector->matchers_count <= SELECTOR_MATCHERS_MAX);
	assert(view->label_sets_count > 0);
	*match = (struct match){ .view = view };
	if (!selector)
		return true;
	match->matchers = selector->matchers;
	match->matchers_count = selector->matchers_count;
	for (size_t i = 0; i < match->matchers_count; i++) {
		const struct matcher *matcher = &match->matchers[i];

		if (matcher_matches(matcher, SLICE_LITERAL("")))
			match->passes_empty |= 1ull << i;
		if (slice_is(matcher->name, SERVICE_LABEL))
			match->of_service |= 1ull << i;
		if (!matcher->regex)
			continue;
		match->known[i] = arena_new_array(arena, uint8_t, view->strings_count);
		if (!match->known[i])
			return false;
	}
	return true;
}

struct slice match_label_text(const struct tables_view *view, const struct label *label,
			      char digits[static MATCH_NUMBER_BYTES])
{
	int len;

	if (!label->numeric)
		return tables_text(view, label->value);
	len = snprintf(digits, MATCH_NUMBER_BYTES, "%" PRId64, label->number);
	return slice_from(digits, (size_t)len);
}

static bool matches(struct match *match, const struct matcher *matcher, struct slice text)
{
	uint32_t steps = matcher->regex ? regex_steps(matcher->regex, text.len) : 1;

	if (__builtin_add_overflow(match->steps, steps, &match->steps))
		match->steps = UINT32_MAX;
	return matcher_matches(matcher, text);
}

static bool fits(struct match *match, size_t i, const struct label *label)
{
	const struct matcher *matcher = &match->matchers[i];
	char digits[MATCH_NUMBER_BYTES];
	uint8_t *known = match->known[i] ? &match->known[i][label->value] : NULL;

	assert(i < match->matchers_count);
	if (!known || label->numeric)
		return matches(match, matcher, match_label_text(match->view, label, digits));
	if (*known == UNKNOWN)
		*known = matches(match, matcher, tables_text(match->view, label->value)) ? FITS
											 : FITS_NOT;
	return *known == FITS;
}

struct match_result match_label_set(struct match *match, uint32_t label_set)
{
	const struct label_set *set = &match->view->label_sets[label_set];
	uint64_t some_fit = 0, some_fit_not = 0;
	struct match_result result = { 0 };

	assert(label_set < match->view->label_sets_count);
	for (uint32_t at = 0; at < set->label_count; at++) {
		const struct label *label = &match->view->labels[set->label_first + at];
		struct slice name = tables_text(match->view, label->name);

		if (!label->numeric && !match->view->strings[label->value].len)
			continue;
		for (size_t i = 0; i < match->matchers_count; i++) {
			if (!slice_equal(match->matchers[i].name, name))
				continue;
			result.present |= 1ull << i;
			*(fits(match, i, label) ? &some_fit : &some_fit_not) |= 1ull << i;
		}
	}
	for (size_t i = 0; i < match->matchers_count; i++) {
		enum matcher_op op = match->matchers[i].op;
		bool negative = op == MATCH_NOT_EQUAL || op == MATCH_NOT_REGEX;

		if (((negative ? ~some_fit_not & result.present : some_fit) >> i) & 1)
			result.passes |= 1ull << i;
	}
	return result;
}

struct match_result match_series(struct match *match, uint32_t label_set)
{
	struct match_result result = match_label_set(match, label_set);
	struct slice name;

	if (!match->of_service)
		return result;
	name = service_of(match->view, label_set).name;
	result.present |= match->of_service;
	result.passes &= ~match->of_service;
	for (size_t i = 0; i < match->matchers_count; i++)
		if ((match->of_service >> i) & 1 && matches(match, &match->matchers[i], name))
			result.passes |= 1ull << i;
	return result;
}
