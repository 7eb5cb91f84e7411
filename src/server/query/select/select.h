/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select - which rows a query means: the column of its type, series by matchers, reports by time.
 *
 * Series get an id across views (same labels, same group, same period = same series). If a series
 * lacks the name of a matcher or group-by, and rows of it (in any view) carry that sample label,
 * the rows decide; such series are read row by row, all others as whole reports. So an answer does
 * not depend on how reports are spread over views.
 *
 * Types: `:delta` may be left out, and Pyroscope's names of CPU time are answered from our own
 * on_cpu samples times their period when no selected series stores anything under them (types.h).
 *
 * select_make first selects series, then reads the headers of blocks, in several threads, and lists
 * the blocks that hold selected reports. Readers of these blocks call select_takes for each report.
 *
 * Lives in the query's work memory. After select_make, all but select_row is read-only.
 */
#ifndef FIRN_SERVER_QUERY_SELECT_SELECT_H
#define FIRN_SERVER_QUERY_SELECT_SELECT_H

#include "base/order/bisect.h"
#include "model/segment.h"
#include "server/query/select/groups.h"
#include "server/query/select/match.h"
#include "server/query/select/mean.h"
#include "server/query/work.h"

#define SELECT_NONE UINT32_MAX

struct select_series {	       /* one series of a segment */
	uint32_t id;	       /* across segments; SELECT_NONE: not selected */
	uint32_t column;       /* of its group */
	uint32_t group;	       /* of all its rows; SELECT_NONE: see template */
	uint32_t template_id;  /* when rows decide on the group */
	uint64_t row_matchers; /* that each row must satisfy */
};

struct select_row_labels { /* what a label set says when a row carries it */
	struct match_result result;
	uint32_t group_names; /* group-by names that it has */
	bool known;
	uint32_t template_id; /* + 1: the one that it was last asked about, */
	uint32_t group;	      /* and the group that it made */
};

/* With steps: what a series has in one. Several may be of the same. */
struct select_bucket {
	uint32_t series;  /* of the segment */
	uint64_t reports; /* that start in it */
	int64_t at_ns;	  /* its start */
	mean_wide total;  /* of the series' column */
};

struct function_index;
struct indexed_sums;
struct select_open; /* what is found out about each series while selecting */

struct select_segment {
	struct segment *segment;
	const struct tables_view *view; /* of the segment */
	int64_t from_ns, to_ns;		/* of reports: the query's and the segment's range */
	struct select_series *series;
	uint32_t *blocks; /* that hold selected reports */
	size_t blocks_count;
	uint64_t rows_count; /* of these blocks, roughly */
	bool by_rows;	     /* some selected series is read row by row */
	struct select_bucket *buckets;
	size_t buckets_count, buckets_capacity;
	struct match match;
	struct select_row_labels *row_labels; /* by label set; of rows that decide on anything */
	struct select_open *open;	      /* by series */
	/* An index that replaces its stacks and their merging; or NULL. */
	const struct function_index *index;
	uint32_t index_member;
	struct indexed_sums *sums; /* shared with other segments of the index */
};

struct select_totals {			/* one series across segments */
	const struct tables_view *view; /* one that has it, */
	uint32_t series;		/* and its id there */
	uint64_t reports_count;
	int64_t period;
	int64_t weight;	    /* what its values are multiplied by before all is divided */
	int64_t nearest_ns; /* with a moment: the start of its nearest report */
	bool has_nearest;
	uint64_t row_matchers; /* names of matchers and of group-by that its rows carry */
	uint32_t row_group_names;
};

struct selection {
	struct work *work;
	const struct query_params *params;
	struct select_segment *segments;
	size_t segments_count;
	struct select_totals *series;
	size_t series_count, series_capacity;
	struct idmap series_map;
	struct groups groups, templates;
	struct profile_type type; /* as asked; delta as stored */
	struct profile_type stored;
	bool by_period;	 /* values are multiplied by the period */
	bool by_times;	 /* as asked, and the type is a delta */
	bool has_times;	 /* with it: times of some samples may be known */
	bool weighted;	 /* some weight is not 1 */
	bool lasts;	 /* some report has a duration, or may have */
	bool settled;	 /* nearest reports are known */
	int64_t step_ns; /* 0 = no steps */
	bool spread;	 /* with steps: as asked, and they are no whole hours (query.h) */
	bool series_only;
	int64_t denominator; /* that sums are divided by: of gauges, else 1 */
	int64_t period;	     /* the largest of those selected */
	uint64_t reports_count;
	int64_t report_ns;	  /* the longest report that is no roll-up */
	int64_t start_ns, end_ns; /* from the first report's start to the last one's end, */
	int64_t duration_ns;	  /* and what is between */
	struct select_row_group *row_group_list; /* groups of (template, label set) pairs */
	size_t row_group_count, row_group_capacity;
	struct idmap row_group_map;
};

/* What a selection has to find besides rows. */
struct select_use {
	int64_t step_ns;  /* not 0: totals are summed on the way, in buckets */
	bool spread;	  /* into all buckets that a report lasts, by their shares */
	bool series_only; /* which series have reports; not how many, and from when to when */
};

/*
 * Distributes a value evenly from `start_ns` on, for `duration_ns`, over steps. The shares add up
 * to the value; with more than QUERY_STEPS_MAX steps the last one gets the rest.
 */
struct select_shares {
	int64_t value, start_ns, duration_ns, step_ns;
	int64_t before; /* what the shares so far have */
	uint32_t count; /* of them */
	int64_t at_ns;	/* the step of the last one, */
	int64_t share;	/* and what it has */
};
bool select_shares_next(struct select_shares *shares);

/* True if a selection with steps has to ask for shares. */
static inline bool select_is_spread(const struct selection *selection)
{
	return selection->spread && selection->type.delta;
}

/* `params->selector` may be NULL or without a type: then every type's first column. */
int select_make(struct selection *selection, struct work *work, const struct query_source *source,
		const struct query_params *params, struct select_use use, struct err *err);

/* True if some span has a time from `at_ns` on that is not after `last_ns`. */
static inline bool select_meets_spans(const struct query_params *params, int64_t at_ns,
				      int64_t last_ns)
{
	size_t low = bisect(0, params->spans_count, i, params->spans[i].to_ns <= at_ns);

	return low < params->spans_count && params->spans[low].from_ns <= last_ns;
}

static inline bool select_in_spans(const struct query_params *params, int64_t at_ns)
{
	return select_meets_spans(params, at_ns, at_ns);
}

/* With by_times: whether times of a report's samples may be in the range, and in some span. */
static inline bool select_may_have_times(const struct query_params *params, int64_t start_ns,
					 int64_t end_ns)
{
	return (start_ns >= params->from_ns || end_ns > params->from_ns) &&
	       (!params->spans_count || select_meets_spans(params, start_ns, end_ns));
}

/* True if a report of a selected series is selected. With by_times its rows decide (times.h). */
static inline bool select_takes_times(const struct selection *selection,
				      const struct select_segment *in, uint32_t id,
				      int64_t start_ns, int64_t end_ns)
{
	if (start_ns < in->from_ns || start_ns >= in->to_ns ||
	    segment_in_hole(in->segment, start_ns))
		return false;
	if (selection->by_times)
		return select_may_have_times(selection->params, start_ns, end_ns);
	if (selection->params->spans_count && !select_in_spans(selection->params, start_ns))
		return false;
	return !selection->settled || start_ns == selection->series[id].nearest_ns;
}

/* True if the selection needs more than a start in the segment's range. */
static inline bool select_beyond_range(const struct selection *selection)
{
	return selection->by_times || selection->params->spans_count || selection->settled;
}

/* True if a report of a block is one of the selected. */
static inline bool select_takes(const struct selection *selection, const struct select_segment *in,
				const struct segment_report *report)
{
	uint32_t id = in->series[report->series].id;

	return id != SELECT_NONE &&
	       select_takes_times(selection, in, id, report->start_ns, report->end_ns);
}

/* True if a series is read as whole reports: no row can be left out or be in another group. */
static inline bool select_whole(const struct select_series *series)
{
	return !series->row_matchers && series->group != SELECT_NONE;
}

/*
 * The group of a row with this label set, SELECT_NONE if the row is not selected. Negative on
 * error. May add groups: one thread at a time.
 */
int select_row(struct selection *selection, struct select_segment *in,
	       const struct select_series *series, uint32_t label_set, uint32_t *ret_group,
	       struct err *err);

#endif
