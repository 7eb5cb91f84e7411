/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_apply - filters (filter.h) applied to merged tries. Each condition is evaluated once per
 * distinct function, or per line of a distinct frame if it is about addresses or lines; the bits of
 * a stack are the union of its frames' bits. One query, one thread; lives in the query's work
 * memory.
 */
#ifndef FIRN_SERVER_QUERY_SHAPE_FILTER_APPLY_H
#define FIRN_SERVER_QUERY_SHAPE_FILTER_APPLY_H

#include "server/query/tree/filter.h"
#include "server/query/name/name.h"

/*
 * The result is 64 bits. Bit i: some frame matches filter i. Bit FILTER_APPLY_BROKEN + i: some
 * frame violates a negated condition of filter i, which is a filter on stacks.
 */
#define FILTER_APPLY_BROKEN 30

_Static_assert(FILTERS_MAX <= FILTER_APPLY_BROKEN, "a bit for each filter");

struct filter_apply {
	const struct filter_list *filters; /* NULL or none: everything is shown */
	struct work *work;
	struct name_table *names;
	const struct tables_view *view;
	uint64_t *frames, *nodes; /* by id; their top bit is set when known */
	uint64_t *functions;	  /* likewise; grows with the names */
	size_t functions_capacity;
	uint64_t from, only, hidden; /* filters by action */
	uint32_t *trail;
	size_t trail_capacity;
};

void filter_apply_begin(struct filter_apply *applied, struct work *work,
			const struct filter_list *filters, struct name_table *names);

/* From now on frames and stacks are of the view that the name table names now. */
int filter_apply_view(struct filter_apply *applied, struct err *err);

/* Evaluates the filters on the stack's frames; false when over budget. */
bool filter_apply_stack(struct filter_apply *applied, uint32_t stack, uint64_t *ret);

/* True if a stack with these bits is shown. */
bool filter_apply_shows_stack(const struct filter_apply *applied, uint64_t bits);

/*
 * *ret: line `line` of a frame is shown. `*path` has the bits of all frames and lines nearer to the
 * root, and is updated. Returns false when over budget.
 */
bool filter_apply_line(struct filter_apply *applied, uint32_t frame, uint32_t line, uint64_t *path,
		       bool *ret);

static inline bool filter_apply_is_idle(const struct filter_apply *applied)
{
	return !applied->filters;
}

#endif
