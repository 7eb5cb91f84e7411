/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match - a selector's matchers over the label sets of one view.
 *
 * A regular expression runs once per distinct value of a view. The meaning of a matcher: the value
 * of a name is the series' label if it has one (not empty), else the row's sample label, else "". A
 * row may carry a name several times: = and =~ hold if one value matches, != and !~ if no value is
 * excluded. A number matches by its decimal digits. The service_name of a series comes from the
 * rule of service.h, so that it always has one. Memory is the caller's arena.
 */
#ifndef FIRN_SERVER_QUERY_SELECT_MATCH_H
#define FIRN_SERVER_QUERY_SELECT_MATCH_H

#include "base/arena.h"
#include "model/selector.h"
#include "model/tables.h"

#define MATCH_NUMBER_BYTES 24

_Static_assert(SELECTOR_MATCHERS_MAX <= 64, "sets of matchers are 64-bit masks");

struct match {
	const struct matcher *matchers;
	size_t matchers_count;
	const struct tables_view *view;
	uint8_t *known[SELECTOR_MATCHERS_MAX]; /* of regular expressions, by string id */
	uint64_t passes_empty;		       /* matchers that "" satisfies */
	uint64_t of_service;		       /* matchers of service_name */
	uint32_t steps;			       /* of regular expressions since match_take_steps */
};

/* The result for one label set, of rows or of a series: bit i for matcher i. */
struct match_result {
	uint64_t present; /* the name is there, not empty */
	uint64_t passes;  /* ... and satisfies the matcher */
};

/* `selector` may be NULL: nothing to match. False when the arena is over budget. */
bool match_init(struct match *match, const struct selector *selector,
		const struct tables_view *view, struct arena *arena);

struct match_result match_label_set(struct match *match, uint32_t label_set);
struct match_result match_series(struct match *match, uint32_t label_set);

/* For work_note. */
static inline uint32_t match_take_steps(struct match *match)
{
	uint32_t steps = match->steps;

	match->steps = 0;
	return steps;
}

/* The text of a label: its value, or its number in decimal (in `digits`). */
struct slice match_label_text(const struct tables_view *view, const struct label *label,
			      char digits[static MATCH_NUMBER_BYTES]);

#endif
