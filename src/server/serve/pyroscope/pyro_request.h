/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyro_request - reads the requests of Pyroscope's calls, which have the same few fields under
 * different numbers, as queries. Times are milliseconds; ranges include the end; without times the
 * range is all time. Field numbers: querier/v1/querier.proto, types/v1/types.proto.
 */
#ifndef FIRN_SERVER_SERVE_PYROSCOPE_PYRO_REQUEST_H
#define FIRN_SERVER_SERVE_PYROSCOPE_PYRO_REQUEST_H

#include "server/serve/api/query_request.h"
#include "server/serve/pyroscope/pyro_types.h"

#define PYRO_CALL_SITE_MAX 256
#define PYRO_IDS_MAX 64
#define PYRO_SELECTORS_MAX 16
#define PYRO_REPORT_ID_BYTES 37	  /* with the end */
#define PYRO_SPAN_LABEL "span_id" /* of samples; its values are hex digits */

/* By what ids samples are chosen: labels of samples that SDKs set. */
enum pyro_id { PYRO_SPAN, PYRO_TRACE, PYRO_PROFILE, PYRO_IDS };

/* Numbers of a request's fields; 0 = it has none. */
struct pyro_shape {
	const char *name;
	uint32_t type, selector, start, end, group_by, step, max_nodes, format, label,
		stack_selector, ids[PYRO_IDS], exemplars, aggregation, limit;
};

struct pyro_request {
	struct slice type, label;
	struct slice selectors[PYRO_SELECTORS_MAX]; /* all hold; in lists, any */
	size_t selectors_count;
	int64_t start_ms, end_ms, max_nodes, format, exemplars, aggregation, limit;
	double step_s;
	struct slice group_by[QUERY_GROUP_BY_MAX];
	size_t group_by_count;
	struct slice call_site[PYRO_CALL_SITE_MAX]; /* names of functions, root first */
	size_t call_site_count;
	struct slice ids[PYRO_IDS][PYRO_IDS_MAX];
	size_t ids_count[PYRO_IDS];
	struct pyro_types types;
};

/* Reads the message itself. Texts are borrowed from it. */
int pyro_read(const struct pyro_shape *shape, struct slice bytes, struct pyro_request *ret,
	      struct err *err);

/* With ids, the query selects samples of these ids only. */
int pyro_begin_with(struct serve *serve, const struct net_request *request,
		    struct pyro_request *pyro, enum parameters_need need, struct query_request *ret,
		    struct err *err);

/* pyro_read and pyro_begin_with of the request's body. */
int pyro_begin(struct serve *serve, const struct net_request *request,
	       const struct pyro_shape *shape, enum parameters_need need, struct pyro_request *pyro,
	       struct query_request *ret, struct err *err);

/*
 * The id by which a report can be asked for as a profile: a UUID of its start and of the labels of
 * its series.
 */
void pyro_report_id(const struct query_series *series, int64_t start_ns,
		    char ret[static PYRO_REPORT_ID_BYTES]);

/*
 * query_request_tree. Where no sample has a label with the ids of spans or of traces that are asked
 * for, OTLP's links say what samples were taken for; where none has those of profiles, they are
 * taken for ids of reports.
 */
int pyro_tree(const struct pyro_request *pyro, struct query_request *query, struct tree **ret,
	      struct err *err);

#endif
