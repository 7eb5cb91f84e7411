/* SPDX-License-Identifier: Apache-2.0 */
/*
 * question - what a request asks: its parameters checked and turned into query_params, together
 * with the snapshot of the store that the answer will be computed over.
 */
#ifndef FIRN_SERVER_SERVE_QUESTION_H
#define FIRN_SERVER_SERVE_QUESTION_H

#include "server/query/query.h"
#include "server/serve/serve.h"

#define QUESTION_RANGE_DEFAULT_NS (3600 * CLOCK_NS_PER_S)
#define QUESTION_MOMENT_WINDOW_NS (300 * CLOCK_NS_PER_S) /* how far the nearest report may be */

struct question {
	struct arena arena; /* the texts that params point into */
	struct selector selector;
	struct query_params params;
	struct query_source source;
	struct store_snapshot snapshot;
	struct store *store;
};

enum question_need {
	QUESTION_TYPE_NEEDED, /* the selector must name a profile type */
	QUESTION_SELECTOR_OPTIONAL,
};

/*
 * Reads query, from, to (default: the last hour) or at, group_by (comma list), demangle; takes the
 * snapshot.
 * On success the caller ends with question_end.
 */
int question_begin(struct serve *serve, const struct net_request *request, enum question_need need,
		   struct question *ret, struct err *err);

/* The same from parsed pieces (gRPC). */
int question_begin_with(struct serve *serve, const struct net_request *request,
			struct slice selector, enum question_need need, int64_t from_ns,
			int64_t to_ns, struct question *ret, struct err *err);

/* Adds the parts of a comma list as group-by labels. */
int question_group_by(struct question *question, struct slice comma_list, struct err *err);

void question_end(struct question *question);

/* Further parameters, copied to the question's arena; fallback when absent. */
struct slice question_text(struct question *question, const struct net_request *request,
			   const char *name, const char *fallback);

#endif
