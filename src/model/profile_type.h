/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_type - the name of a profile type, as Parca and Grafana write it:
 *
 *     name:sample_type:sample_unit:period_type:period_unit[:delta]
 *
 * `:delta` says that values add up over time (COLUMN_DELTA); without it they are gauges.
 * The query layer, not this module, handles Pyroscope's
 * `process_cpu:cpu:nanoseconds:cpu:nanoseconds`, which is a delta without :delta.
 */
#ifndef FIRN_MODEL_PROFILE_TYPE_H
#define FIRN_MODEL_PROFILE_TYPE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "model/tables.h"

struct profile_type {
	struct slice name, sample_type, sample_unit, period_type, period_unit; /* borrowed */
	bool delta;
};

/* Five or six parts; the sample unit, period type and period unit may be empty. Slices point into
 * `text`.
 */
int profile_type_parse(struct slice text, struct profile_type *ret, struct err *err);

void profile_type_format(struct strbuf *out, const struct profile_type *type);

/* The type of one column of a group; slices live as long as the tables. */
struct profile_type profile_type_of(const struct tables_view *view, uint32_t group,
				    uint32_t column);

/* A copy whose texts live in the arena. */
struct profile_type profile_type_copy(const struct profile_type *type, struct arena *arena);

/*
 * True if reports of this type may be stored in a group called `name`: the query layer finds some
 * types under the names that other agents use.
 */
bool profile_type_may_be(const struct profile_type *type, struct slice name);

bool profile_type_equal(const struct profile_type *a, const struct profile_type *b);

#endif
