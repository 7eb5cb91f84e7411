/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_request - one query of a client: its parameters (parameters.h), its ticket
 * (admission/ticket.h), and the snapshot of the store that it reads.
 *
 * query_request_tree and query_request_series take the snapshot that suits the query: roll-ups
 * where they are exact. They and query_request_diff wait for a seat first and hold it until
 * query_request_end.
 */
#ifndef FIRN_SERVER_SERVE_API_QUERY_REQUEST_H
#define FIRN_SERVER_SERVE_API_QUERY_REQUEST_H

#include "server/query/series/flamechart.h"
#include "server/serve/admission/ticket.h"
#include "server/serve/api/parameters.h"
#include "server/serve/serve.h"

struct query_request {
	struct parameters asked;
	struct ticket ticket;
	struct query_source source; /* after query_request_open */
	struct slice tenant;	    /* whose the query is: tenant.h */
	struct quota_tenant *quota; /* quota.h; NULL: tenants are not told apart */
	bool is_counted;	    /* as one that its tenant has */
	struct store_snapshot snapshot;
	struct store *store;	/* NULL: no snapshot is taken */
	enum store_reads reads; /* what the snapshot has */
	struct serve *serve;
	const struct net_request *request;
	bool is_part;	      /* of another query, which is listed */
	uint64_t version;     /* of what the answer is made of; 0: it is not kept */
	_Atomic bool crowded; /* others had the memory */
};

/* parameters_read. On success the caller ends with query_request_end. */
int query_request_read(struct serve *serve, const struct net_request *request,
		       enum parameters_need need, struct query_request *ret, struct err *err);

/*
 * Takes a snapshot of all reports, to ask it several times. From the first snapshot on the query is
 * listed (active_queries.h).
 */
int query_request_open(struct query_request *query, struct err *err);

/* The same for query_types, query_labels and query_label_values alone. */
int query_request_list(struct query_request *query, struct err *err);

/* query_tree and query_series over what suits them; partitions that were left out are counted. */
int query_request_tree(struct query_request *query, struct tree **ret, struct err *err);
int query_request_series(struct query_request *query, const struct query_range_params *range,
			 struct query_series_set *ret, struct err *err);

/* Releases the snapshot, so that the next answer of the same request takes one that suits it. */
void query_request_forget(struct query_request *query);

/*
 * Before query_request_tree or query_request_series (`range`, else NULL): waits for a seat, unless
 * the answer is cached, or an equal query waits already. Then *ret_is_answered is true, and
 * `response` has the answer. Otherwise the caller computes, and reports the result by
 * query_request_answered (`rc` as returned) before query_request_end. With explain=1 the answer is
 * always computed.
 */
int query_request_share(struct query_request *query, const struct query_range_params *range,
			struct net_response *response, bool *ret_is_answered, struct err *err);
void query_request_answered(struct query_request *query, int rc, struct net_response *response);

/*
 * Before a body of about `bytes` is made: ERR_UNAVAILABLE while answers that others did not read
 * have the memory for it.
 */
int query_request_pay(struct net_response *response, size_t bytes, struct err *err);

/*
 * query_request_read_base reads the base that a diff compares to (parameters_read_base), which ends
 * with a query_request_end of its own; query_request_diff is query_diff of the two.
 */
int query_request_read_base(struct serve *serve, const struct net_request *request,
			    struct query_request *ret, struct err *err);
int query_request_diff(struct query_request *base, struct query_request *query, struct tree **ret,
		       struct err *err);
/* Which changes of that diff are more than noise: compare.h. */
int query_request_compare(struct query_request *base, struct query_request *query,
			  struct tree *tree, struct err *err);

/*
 * ERR_NO_MEMORY if an answer of `bytes` is too large: formats that repeat names can be many times
 * larger than the tree.
 */
int query_request_check_size(const struct query_request *query, double bytes, struct err *err);

/* A tree per step. */
int query_request_chart(struct query_request *query, int64_t step_ns, struct flamechart *ret,
			struct err *err);

/* How exactly the values of that tree are known: compare_intervals. */
int query_request_intervals(struct query_request *query, struct tree *tree, struct err *err);

/* query_request_read, and query_request_list when it has a seat. */
int query_request_begin(struct serve *serve, const struct net_request *request,
			enum parameters_need need, struct query_request *ret, struct err *err);

/*
 * The same from parsed pieces (gRPC). With PARAMETERS_TYPE_NEEDED no snapshot is taken yet:
 * query_request_tree and query_request_series do.
 */
int query_request_begin_with(struct serve *serve, const struct net_request *request,
			     struct slice selector, enum parameters_need need, int64_t from_ns,
			     int64_t to_ns, struct query_request *ret, struct err *err);

void query_request_end(struct query_request *query);

/* Reads a query whose selector names a type, and answers it by `write`, which writes JSON. */
void query_request_answer(struct serve *serve, const struct net_request *request,
			  struct net_response *response,
			  int (*write)(struct query_request *query,
				       const struct net_request *request, struct strbuf *out,
				       struct err *err));

#endif
