/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyro_types - the profile types of a Pyroscope call: all types in the range that the matchers of
 * __profile_type__ select. A type's id is "name:sample_type:sample_unit:period_type:period_unit";
 * CPU time of our own agent is also there under Pyroscope's name for it.
 */
#ifndef FIRN_SERVER_SERVE_PYROSCOPE_PYRO_TYPES_H
#define FIRN_SERVER_SERVE_PYROSCOPE_PYRO_TYPES_H

#include "server/serve/api/query_request.h"

#define PYRO_TYPE_LABEL "__profile_type__"

struct pyro_type {
	struct profile_type type; /* as stored */
	struct slice id;
};

struct pyro_types {
	bool chosen; /* by matchers; otherwise all that are there are meant */
	struct pyro_type *list;
	size_t count;
};

/*
 * Takes matchers of __profile_type__ out of the query's selector; *ret is what they mean. Where
 * the selector names a type that does not fit them: ERR_INVALID.
 */
int pyro_types_match(struct query_request *query, struct pyro_types *ret, struct err *err);

/* All that are meant; two may have one id. In the query's arena. */
int pyro_types_list(struct query_request *query, const struct pyro_types *meant,
		    struct pyro_type **ret, size_t *ret_count, struct err *err);

#endif
