/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parameters - the parameters of a query, checked, as query_params (docs/api.md).
 *
 * Pure: nothing is looked up, waited for or measured; the time of day is an argument. Texts are
 * copied to the arena, which has PARAMETERS_ARENA_BYTES. What is read points into the struct, which
 * therefore stays where it is. Limits of the query (query_limits) are the caller's.
 */
#ifndef FIRN_SERVER_SERVE_API_PARAMETERS_H
#define FIRN_SERVER_SERVE_API_PARAMETERS_H

#include "base/clock.h"
#include "net/server.h"
#include "server/query/query.h"

#define PARAMETERS_ARENA_BYTES ((size_t)1 << 20)
#define PARAMETERS_MOMENT_WINDOW_NS (300 * CLOCK_NS_PER_S) /* how far the nearest report may be */
#define PARAMETERS_CELLS_MAX 1000
#define PARAMETERS_TIMES_BELOW_NS (10 * CLOCK_NS_PER_S)

struct parameters {
	struct arena arena;
	struct selector selector;
	struct filter_list filters;
	struct query_params params;
	struct slice id;       /* that the client gave the query, or "" */
	int64_t names_wait_ns; /* for names that are still read; 0: as long as the query may */
};

enum parameters_need {
	PARAMETERS_TYPE_NEEDED, /* the selector must name a profile type */
	PARAMETERS_SELECTOR_OPTIONAL,
};

void parameters_init(struct parameters *asked);
void parameters_free(struct parameters *asked);

/*
 * Reads query, from, to (default: the last hour before now_ns) or at, group_by (comma list), filter
 * (any number), cells, times, demangle, names_wait, id. What failed is freed by parameters_free
 * too.
 */
MUST_USE int parameters_read(struct parameters *asked, const struct net_request *request,
			     enum parameters_need need, int64_t now_ns, struct err *err);

/*
 * The base that a diff compares to: base_query (default: query), base_from and base_to, which must
 * be there.
 */
MUST_USE int parameters_read_base(struct parameters *asked, const struct net_request *request,
				  int64_t now_ns, struct err *err);

/* The same from pieces that another protocol has read. */
MUST_USE int parameters_take(struct parameters *asked, struct slice selector,
			     enum parameters_need need, int64_t from_ns, int64_t to_ns,
			     struct err *err);

/*
 * For answers of steps of that width: samples count at their own times where the parameter "times"
 * says so, or says nothing and the steps are shorter than PARAMETERS_TIMES_BELOW_NS.
 */
void parameters_times(struct parameters *asked, const struct net_request *request, int64_t step_ns);

/* Adds the parts of a comma list as group-by labels. */
int parameters_group_by(struct parameters *asked, struct slice comma_list, struct err *err);

/* Further parameters, copied to the arena; fallback when absent. */
struct slice parameters_text(struct parameters *asked, const struct net_request *request,
			     const char *name, const char *fallback);
/* True if a parameter is "1". */
bool parameters_is_set(struct parameters *asked, const struct net_request *request,
		       const char *name);

#endif
