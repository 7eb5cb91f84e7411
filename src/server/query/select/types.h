/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types - which stored columns answer a profile type.
 *
 * The candidates, in this order: the type itself; the type with `:delta` (Pyroscope leaves it out;
 * for its API this comes first); for CPU time under Pyroscope's name, our agent's samples times
 * their period. The first candidate of which a selected series has reports in the range answers, so
 * what other services store changes nothing, and nothing counts twice. Deltas over no time come
 * last: they only say where counting began, while a snapshot says how much it was.
 */
#ifndef FIRN_SERVER_QUERY_SELECT_TYPES_H
#define FIRN_SERVER_QUERY_SELECT_TYPES_H

#include "model/profile_type.h"
#include "server/query/query.h"

#define TYPES_NO_COLUMN UINT32_MAX

struct types_answer {
	struct profile_type stored;
	bool by_period; /* values are to be multiplied by the period */
};

#define TYPES_ANSWERS_MAX 3

/*
 * Finds the types that may answer, in the order of preference: those that some segment has, or the
 * one asked for when there are none. Returns how many, at least one.
 */
size_t types_find(const struct query_source *source, const struct profile_type *asked,
		  bool deltas_first, struct types_answer ret[static TYPES_ANSWERS_MAX]);

/* The column of a group that is of this type, or TYPES_NO_COLUMN. */
uint32_t types_column(const struct tables_view *view, uint32_t group,
		      const struct profile_type *type);

#endif
