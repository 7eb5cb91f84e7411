/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select - which rows a query means: the column of its type, series by matchers, reports by time.
 *
 * Series get an id across views (same labels, same group, same period = same series). A matcher or
 * group-by name that a series lacks is left to its rows when rows of it (in any view) carry that
 * sample label; such series are read row by row, all others as whole reports. So an answer does not
 * depend on how reports are spread over views.
 *
 * Types: `:delta` may be left out, and Pyroscope's names of CPU time are answered from our own
 * on_cpu samples times their period when nothing is stored under them.
 *
 * Lives in the query's work memory.
 */
#ifndef FIRN_SERVER_QUERY_SELECT_H
#define FIRN_SERVER_QUERY_SELECT_H

#include "server/query/groups.h"
#include "server/query/match.h"
#include "server/query/work.h"

#define SELECT_NONE UINT32_MAX

struct select_series {	       /* one series of a view */
	uint32_t id;	       /* across views; SELECT_NONE: not selected */
	uint32_t column;       /* of its group */
	uint32_t group;	       /* of all its rows; SELECT_NONE: see template */
	uint32_t template_id;  /* when rows decide on the group */
	uint64_t row_matchers; /* that each row must satisfy */
};

struct select_row_labels { /* what a label set says when a row carries it */
	struct match_result result;
	uint32_t group_names; /* group-by names that it has */
	bool known;
};

struct select_open; /* scratch while selecting */

struct select_view {
	const struct tables_view *view;
	struct select_series *series;
	uint32_t *reports; /* selected, in the view's order */
	size_t reports_count;
	struct match match;
	struct select_row_labels *row_labels; /* by label set; of rows that decide on anything */
	struct select_open *open;	      /* by series */
};

struct select_totals { /* one series across views */
	const struct tables_view *view; /* one that has it, */
	uint32_t series;		/* and its id there */
	uint32_t reports_count;
	int64_t period;
	int64_t weight; /* what its values are multiplied by before all is divided */
	int64_t nearest_ns; /* with a moment: the start of its nearest report */
	bool has_nearest;
	uint64_t row_matchers; /* names of matchers and of group-by that its rows carry */
	uint32_t row_group_names;
};

struct selection {
	struct work *work;
	const struct query_params *params;
	struct select_view *views;
	size_t views_count;
	struct select_totals *series;
	size_t series_count, series_capacity;
	struct idmap series_map;
	struct groups groups, templates;
	struct profile_type type; /* as asked; delta as stored */
	struct profile_type stored;
	bool by_period;	     /* values are multiplied by the period */
	bool weighted;	     /* some weight is not 1 */
	int64_t denominator; /* that sums are divided by: of gauges, else 1 */
	int64_t period;	     /* the largest of those selected */
	uint64_t reports_count;
	int64_t start_ns, end_ns; /* from the first report's start to the last one's end, */
	int64_t duration_ns;	  /* and what is between */
	struct select_row_group *row_group_list; /* groups of (template, label set) pairs */
	size_t row_group_count, row_group_capacity;
	struct idmap row_group_map;
};

/* `params->selector` may be NULL or without a type: then every type's first column. */
int select_make(struct selection *selection, struct work *work, const struct query_source *source,
		const struct query_params *params, struct err *err);

/* Whether a series is read as whole reports: no row can be left out or be in another group. */
static inline bool select_whole(const struct select_series *series)
{
	return !series->row_matchers && series->group != SELECT_NONE;
}

/*
 * The group of a row with this label set, SELECT_NONE when the row is out. Negative on error.
 */
int select_row(struct selection *selection, struct select_view *view,
	       const struct select_series *series, uint32_t label_set, uint32_t *ret_group,
	       struct err *err);

#endif
