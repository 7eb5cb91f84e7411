/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_name - the label that Pyroscope's clients begin with, for profiles that have none.
 *
 * Pyroscope makes one up when profiles come in. Here it is made up when Pyroscope's calls ask:
 * nothing is stored twice, and what was stored before has one too. A series without service_name
 * has the value of the first label that it has of service, job, app, container, systemd_unit, comm.
 *
 * Groups by service_name are exact. A matcher service_name="x" stands for the first of these labels
 * that has the value x somewhere in the range, others (=~, !=, !~) for the first that is there.
 */
#ifndef FIRN_SERVER_SERVE_API_SERVICE_NAME_H
#define FIRN_SERVER_SERVE_API_SERVICE_NAME_H

#include "server/serve/api/query_request.h"

#define SERVICE_NAME "service_name"

struct service_name {
	struct slice labels[QUERY_GROUP_BY_MAX]; /* those that are there, in order; constants */
	size_t count;
};

/* Which labels stand for it; `query` has a snapshot. */
int service_name_find(struct query_request *query, struct service_name *ret, struct err *err);

/* Renames matchers of service_name in the query's selector. */
int service_name_match(struct query_request *query, const struct service_name *service,
		       struct err *err);

/* Puts the labels in place of service_name in a group-by list; ERR_LIMIT when they are too many. */
int service_name_expand(const struct service_name *service, struct slice *group_by, size_t *count,
			struct err *err);

/*
 * Turns the labels of each line, which was grouped by the labels, back into service_name, and sums
 * up lines that are then alike.
 */
void service_name_fold(const struct service_name *service, struct query_series_set *set);

#endif
