/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types - which stored columns answer a profile type.
 *
 * A type that is stored is itself. Else `:delta` may have been left out (Pyroscope's habit), and
 * CPU time under Pyroscope's name is our agent's samples times their period.
 */
#ifndef FIRN_SERVER_QUERY_TYPES_H
#define FIRN_SERVER_QUERY_TYPES_H

#include "model/profile_type.h"
#include "server/query/query.h"

#define TYPES_NO_COLUMN UINT32_MAX

struct types_answer {
	struct profile_type stored;
	bool by_period; /* values are to be multiplied by the period */
};

struct types_answer types_find(const struct query_source *source, const struct profile_type *asked);

/* The column of a group that is of this type, or TYPES_NO_COLUMN. */
uint32_t types_column(const struct tables_view *view, uint32_t group,
		      const struct profile_type *type);

#endif
