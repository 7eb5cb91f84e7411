/* SPDX-License-Identifier: Apache-2.0 */
/*
 * question - what a request asks: its parameters checked and turned into query_params, together
 * with the snapshot of the store that the answer will be computed over. question_tree and
 * question_series take the snapshot that suits what is asked: roll-ups where they are exact. They
 * and question_diff wait for their turn first (turns.h), which lasts until question_end.
 */
#ifndef FIRN_SERVER_SERVE_API_QUERY_REQUEST_H
#define FIRN_SERVER_SERVE_API_QUERY_REQUEST_H

#include "server/query/series/flamechart.h"
#include "server/query/query.h"
#include "server/serve/serve.h"

#define QUESTION_RANGE_DEFAULT_NS (3600 * CLOCK_NS_PER_S)
#define QUESTION_MOMENT_WINDOW_NS (300 * CLOCK_NS_PER_S) /* how far the nearest report may be */

struct question {
	struct arena arena; /* the texts that params point into */
	struct selector selector;
	struct filter_list filters;
	struct query_params params;
	struct query_source source; /* after question_open */
	struct slice tenant;	    /* whose the question is: tenant.h */
	struct store_snapshot snapshot;
	struct store *store; /* NULL: no snapshot is taken */
	struct serve *serve;
	const struct net_request *request;
	struct slice id;	       /* that the client gave it, or "" */
	struct running_entry *running; /* since the first snapshot */
	bool is_part;		       /* of another question, which is listed */
	struct turn *turn;	       /* since the answer is being computed: turns.h */
	struct shared_lead *lead;      /* while others may get its answer too: shared.h */
	struct slice key;	       /* what makes its answer; "": it is shared with nobody */
	uint64_t version;	   /* of what the answer is made of; 0: it is not kept (kept.h) */
	int64_t names_patience_ns; /* of trees, from then on; 0 = as long as it takes */
	_Atomic bool crowded;	   /* others had the memory */
};

enum question_need {
	QUESTION_TYPE_NEEDED, /* the selector must name a profile type */
	QUESTION_SELECTOR_OPTIONAL,
};

#define QUESTION_CELLS_MAX 1000
#define QUESTION_TIMES_BELOW_NS (10 * CLOCK_NS_PER_S)

/*
 * Reads query, from, to (default: the last hour) or at, group_by (comma list), filter (any number),
 * cells, times, demangle, id. On success the caller ends with question_end.
 */
int question_read(struct serve *serve, const struct net_request *request, enum question_need need,
		  struct question *ret, struct err *err);

/*
 * Takes a snapshot of all reports: for lists of what there is, and to ask it several times. From
 * the first snapshot on the question is listed (running.h).
 */
int question_open(struct question *question, struct err *err);

/* query_tree and query_series over what suits them; partitions that were left out are counted. */
int question_tree(struct question *question, struct tree **ret, struct err *err);
int question_series(struct question *question, const struct query_range_params *range,
		    struct query_series_set *ret, struct err *err);

/*
 * Before question_tree or question_series (`range`, else NULL): waits for the turn, unless the
 * answer is kept, or another question like this one waits already. Then *ret_is_answered, and
 * `response` has the answer. Who goes on itself says by question_answered, before question_end,
 * what came out (`rc` as returned). With explain=1 it is always computed.
 */
int question_share(struct question *question, const struct query_range_params *range,
		   struct net_response *response, bool *ret_is_answered, struct err *err);
void question_answered(struct question *question, int rc, const struct net_response *response);

/*
 * What a diff compares to: base_query (default: query), base_from and base_to, which must be there.
 * Ends with question_end of its own. query_diff of the two.
 */
int question_read_base(struct serve *serve, const struct net_request *request, struct question *ret,
		       struct err *err);
int question_diff(struct question *base, struct question *question, struct tree **ret,
		  struct err *err);
/* Which changes of that diff are more than noise: compare.h. */
int question_compare(struct question *base, struct question *question, struct tree *tree,
		     struct err *err);

/* What repeats names can be many times larger than the tree that was paid for: ERR_NO_MEMORY. */
int question_check_size(const struct question *question, double bytes, struct err *err);

/* A tree per step. */
int question_chart(struct question *question, int64_t step_ns, struct flamechart *ret,
		   struct err *err);

/* How exactly the values of that tree are known: compare_intervals. */
int question_intervals(struct question *question, struct tree *tree, struct err *err);

/* question_read, and question_open when its turn has come: for lists of what there is. */
int question_begin(struct serve *serve, const struct net_request *request, enum question_need need,
		   struct question *ret, struct err *err);

/*
 * The same from parsed pieces (gRPC). With QUESTION_TYPE_NEEDED no snapshot is taken yet:
 * question_tree and question_series do.
 */
int question_begin_with(struct serve *serve, const struct net_request *request,
			struct slice selector, enum question_need need, int64_t from_ns,
			int64_t to_ns, struct question *ret, struct err *err);

/*
 * For answers of steps of that width: samples count at their own times where the parameter "times"
 * says so, or says nothing and the steps are shorter than QUESTION_TIMES_BELOW_NS.
 */
void question_times(struct question *question, const struct net_request *request, int64_t step_ns);

/* Adds the parts of a comma list as group-by labels. */
int question_group_by(struct question *question, struct slice comma_list, struct err *err);

void question_end(struct question *question);

/* Reads a question whose selector names a type, and answers it by `write`, which writes JSON. */
void question_answer(struct serve *serve, const struct net_request *request,
		     struct net_response *response,
		     int (*write)(struct question *question, const struct net_request *request,
				  struct strbuf *out, struct err *err));

/* Further parameters, copied to the question's arena; fallback when absent. */
struct slice question_text(struct question *question, const struct net_request *request,
			   const char *name, const char *fallback);
/* Whether a parameter is "1". */
bool question_is_set(struct question *question, const struct net_request *request,
		     const char *name);

#endif
