/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query - answers over segments (a store's snapshot, or the tables of `firn record`).
 *
 * select (series by matchers, reports by time) -> accumulate (dense counter per stack and group) ->
 * merge (tries) -> name (frame -> inline chain of functions) -> collapse -> struct tree
 *
 * Knows nothing of HTTP. Each call has a memory budget, a deadline and a cancel flag; going over
 * fails that call (ERR_NO_MEMORY, ERR_DEADLINE, ERR_CANCELLED), never the process. Numbers are
 * exact. A segment that cannot be read is left out: the answer counts them (parts_unreadable).
 * Calls share a memory budget (query_pool) and the indexes of functions (index_cache), nothing
 * else. They may run at the same time, each over segments of its own.
 */
#ifndef FIRN_SERVER_QUERY_QUERY_H
#define FIRN_SERVER_QUERY_QUERY_H

#include <stdatomic.h>

#include "base/err.h"
#include "model/segment.h"
#include "model/selector.h"
#include "server/query/tree/filter.h"
#include "server/query/series_part.h"
#include "server/query/stats.h"
#include "server/query/tree/tree.h"
#include "server/resolve/display/demangle.h"

struct index_cache;
struct resolver;
struct resolver_symbols; /* resolver.h */

#define QUERY_GROUP_BY_MAX 8
#define QUERY_SERIES_MAX 10000 /* time series in one answer */
#define QUERY_STEPS_MAX 11000  /* points in one time series */

/* Together the segments hold each report once. Stacks are loaded into them as they are needed. */
struct query_source {
	struct segment *segments;
	size_t segments_count;
	struct resolver *resolver;   /* may be NULL: native frames stay addresses */
	struct index_cache *indexes; /* for tables of functions; may be NULL */
};

/* Memory of all queries that share it, their answers until tree_free included. */
struct query_pool {
	_Atomic size_t used_bytes;
	size_t limit_bytes;
};

struct query_limits {
	size_t memory_bytes;	       /* 0 = default */
	size_t apart_bytes;	       /* of tries that need not be merged (merge.h); 0 = default */
	struct query_pool *pool;       /* may be NULL */
	_Atomic bool *crowded;	       /* set when others hold the pool's memory; may be NULL */
	int64_t deadline_at_ns;	       /* monotonic; 0 = none */
	int64_t names_until_ns;	       /* monotonic: how long names are waited for; 0 = always, */
	int64_t names_give_up_at_ns;   /* but not longer than until then; 0 = as long as it takes */
	const _Atomic bool *cancelled; /* the client has gone; may be NULL */
	const _Atomic bool *stopped;   /* somebody said to stop; may be NULL */
	uint32_t threads_max;	       /* 0 = by the CPUs, and only where it pays */
	struct query_progress *progress; /* may be NULL */
	/*
	 * True when names are waited for no longer: asked every 50 ms, on the thread that made the
	 * query. May be NULL.
	 */
	bool (*leave_names)(void *context);
	void *leave_context;
};

/* ERR_CANCELLED or ERR_DEADLINE when an answer is to end: for what is made of a tree afterwards. */
int query_limits_check(const struct query_limits *limits, struct err *err);

/* A binary whose symbols are wanted for what is made of a tree afterwards. */
struct query_symbols_of {
	struct slice build_id, mapping;
	bool by_offset;	  /* addresses are file offsets */
	bool wants_best;  /* waits while a better file is read, too */
	int64_t until_ns; /* monotonic: takes what there is then; INT64_MAX: waits for all of it */
};

/*
 * As resolver_open, but ends as query_limits_check does, with its result; `limits` may be NULL.
 * Also then *ret says what there is, and is to be closed.
 */
int query_open_symbols(struct resolver *resolver, const struct query_symbols_of *of,
		       const struct query_limits *limits, struct resolver_symbols *ret,
		       struct err *err);

struct query_span {
	int64_t from_ns, to_ns; /* half open */
};

struct query_params {
	const struct selector *selector; /* has_type must be set */
	int64_t from_ns, to_ns;		 /* a report is in when from <= start < to, */
	const struct query_span *spans;	 /* and in one of these; sorted, disjoint; none: anywhere */
	size_t spans_count;		 /* with some, segments must be of raw reports */
	bool by_times; /* of delta types: samples whose times are known count at these (below) */
	const struct trace_link *links; /* with by_times: only what was sampled for one of these: */
	size_t links_count;		/* a zero trace or span id stands for any; 0: everything */
	bool by_period;			/* values are multiplied by the periods of their series */
	bool deltas_first;	  /* a type without :delta means one first: Pyroscope's never say */
	bool at_moment;		  /* instead: of each series the report that starts nearest to */
	int64_t moment_ns;	  /* this moment, not further away than */
	int64_t moment_window_ns; /* this; the views must cover that window */
	struct slice group_by[QUERY_GROUP_BY_MAX]; /* label names; sample labels count too */
	size_t group_by_count;
	bool series_apart;		   /* a group has what one series has of it */
	enum demangle_mode demangle;	   /* how much of a function's name is shown */
	const struct filter_list *filters; /* of stacks and frames; may be NULL */
	const struct series_part *part;	   /* of the series only these; NULL: all */
	bool nodes_only; /* without stacks, locations and lines, which only pprof needs */
	bool places;	 /* tree.places is wanted; without width_px and rows_only */
	unsigned apart;	 /* what else tells functions apart: NAME_APART_ bits (name.h) */
	/*
	 * Of a picture that is so wide, 0 = of any: with nodes_only, nodes narrower than half a
	 * pixel may be left out (tree.cut).
	 */
	uint32_t width_px;
	bool rows_only; /* for render_top alone: rows may come instead of functions and nodes, */
	uint32_t rows_limit; /* as many as it is to show; 0 = all */
	struct query_limits limits;
};

/*
 * With by_times, a report that starts up to QUERY_TIMES_BACK_NS before the range and ends in it
 * takes part too: segments have to cover that, and be of raw reports. Samples whose times were not
 * kept count at the start of their report.
 */
#define QUERY_TIMES_BACK_NS ((int64_t)60 * 1000000000)

/*
 * The merged call tree. Delta types: sums. Gauges over a range: the mean of each series' reports,
 * summed over series, in whole numbers that add up (shape/rounding.h).
 */
int query_tree(const struct query_source *source, const struct query_params *params,
	       struct tree **ret, struct err *err);

/*
 * Two trees in one: every node that either has, with the values of `params` in self and total and
 * those of `base` in tree->base; siblings sorted by both together. Nothing is scaled. Filters,
 * limits and how names are shown are those of `params`; neither may group. Nodes only.
 */
int query_diff(const struct query_source *base_source, const struct query_params *base,
	       const struct query_source *source, const struct query_params *params,
	       struct tree **ret, struct err *err);

/*
 * One point per step that has data. A bucket is floor(start / step) * step; `value` as in
 * query_tree, gauges rounded once. `per_second`: of delta types value / step, at the edges of the
 * range / the part of the step that is in it; of gauges the value. `reports` are those that start
 * in the step, and `sum` is what they have together, also of gauges.
 */
struct query_point {
	int64_t at_ns;
	int64_t value;
	int64_t sum;
	double per_second;
	uint32_t reports;
};
struct query_label {
	struct slice name, value;
};
struct query_series {
	struct query_label *labels;
	size_t labels_count;
	struct query_point *points;
	size_t points_count;
};
struct query_series_set {
	struct arena arena; /* owns all below */
	struct query_series *series;
	size_t series_count;
	struct profile_type type;
	int64_t period;
	int64_t step_ns;
	int64_t report_ns;	   /* the longest report that is no roll-up */
	bool has_times;		   /* by_times, and times of samples are known */
	uint64_t parts_unreadable; /* left out; the caller adds the snapshot's */
	struct query_stats stats;
};
/* sum_by: label names; none and sum_all=false = one line per series; sum_all = one line. */
struct query_range_params {
	struct query_params base;
	int64_t step_ns; /* >= 1 ms; the range over the step is at most QUERY_STEPS_MAX */
	bool sum_all;	 /* base.group_by are the sum-by labels otherwise */
	/*
	 * The value of a report is spread evenly over its duration: each step has its share, also
	 * beyond the range, so that the steps add up to the tree and no step has more per second
	 * than the reports. Not in steps of whole hours, where a report counts in the step in which
	 * it starts, as without this. For delta types, without by_times.
	 */
	bool spread;
};
int query_series(const struct query_source *source, const struct query_range_params *params,
		 struct query_series_set *ret, struct err *err);
void query_series_free(struct query_series_set *set);

/*
 * The stored types, labels and values of a label: distinct, sorted bytewise, in the arena. The
 * selector may be without type or NULL.
 */
struct query_type {
	struct profile_type type;
	int64_t period;
	int64_t newest_ns; /* start of the newest report of this type in range */
};
int query_types(const struct query_source *source, int64_t from_ns, int64_t to_ns,
		struct arena *arena, struct query_type **ret, size_t *ret_count, struct err *err);
int query_labels(const struct query_source *source, const struct selector *selector,
		 int64_t from_ns, int64_t to_ns, struct arena *arena, struct slice **ret,
		 size_t *ret_count, struct err *err);
int query_label_values(const struct query_source *source, const struct selector *selector,
		       struct slice label, int64_t from_ns, int64_t to_ns, struct arena *arena,
		       struct slice **ret, size_t *ret_count, struct err *err);

#endif
