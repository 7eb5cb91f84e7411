/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exemplars - the reports that stand for the points of a time series: the largest of each series
 * and step.
 */
#ifndef FIRN_SERVER_QUERY_SERIES_EXEMPLARS_H
#define FIRN_SERVER_QUERY_SERIES_EXEMPLARS_H

#include "server/query/query.h"

struct exemplar {
	uint32_t series; /* of `series` */
	int64_t start_ns, value;
};

struct exemplars {
	struct arena arena;	     /* owns all below */
	struct query_series *series; /* labels alone */
	size_t series_count;
	struct exemplar *list; /* several may be of one series and step: the largest counts */
	size_t count;
};

/*
 * `source` must be of raw reports. Series that are read row by row (select.h) have none. On success
 * exemplars_free is due.
 */
int exemplars_find(const struct query_source *source, const struct query_range_params *params,
		   struct exemplars *ret, struct err *err);
void exemplars_free(struct exemplars *exemplars);

#endif
