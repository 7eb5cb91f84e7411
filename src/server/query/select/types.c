/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/select/types.h"

#include <assert.h>

#define TYPE(name, sample_type, sample_unit, period_type, period_unit, delta)                      \
	{                                                                                          \
		SLICE_LITERAL(name), SLICE_LITERAL(sample_type), SLICE_LITERAL(sample_unit),       \
			SLICE_LITERAL(period_type), SLICE_LITERAL(period_unit), delta              \
	}

static const struct {
	struct profile_type asked; /* `delta` does not matter */
	struct types_answer answer;
} aliases[] = {
	{ TYPE("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds", true),
	  { TYPE("on_cpu", "samples", "count", "cpu", "nanoseconds", true), true } },
	{ TYPE("process_cpu", "samples", "count", "cpu", "nanoseconds", true),
	  { TYPE("on_cpu", "samples", "count", "cpu", "nanoseconds", true), false } },
};

uint32_t types_column(const struct tables_view *view, uint32_t group,
		      const struct profile_type *type)
{
	for (uint32_t i = 0; i < view->groups[group].column_count; i++) {
		struct profile_type have = profile_type_of(view, group, i);

		if (profile_type_equal(&have, type))
			return i;
	}
	return TYPES_NO_COLUMN;
}

static bool is_stored(const struct query_source *source, const struct profile_type *type)
{
	for (size_t i = 0; i < source->segments_count; i++) {
		const struct tables_view *view = &source->segments[i].view;

		for (uint32_t group = 0; group < view->groups_count; group++)
			if (types_column(view, group, type) != TYPES_NO_COLUMN)
				return true;
	}
	return false;
}

size_t types_find(const struct query_source *source, const struct profile_type *asked,
		  bool deltas_first, struct types_answer ret[static TYPES_ANSWERS_MAX])
{
	struct profile_type delta = *asked;
	size_t count = 0;

	assert(source->segments || !source->segments_count);
	delta.delta = true;
	if (deltas_first && is_stored(source, &delta))
		ret[count++] = (struct types_answer){ delta, false };
	if (is_stored(source, asked) && !(deltas_first && asked->delta))
		ret[count++] = (struct types_answer){ *asked, false };
	if (!deltas_first && !asked->delta && is_stored(source, &delta))
		ret[count++] = (struct types_answer){ delta, false };
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (profile_type_equal(&aliases[i].asked, &delta) &&
		    is_stored(source, &aliases[i].answer.stored))
			ret[count++] = aliases[i].answer;
	if (!count)
		ret[count++] = (struct types_answer){ *asked, false };
	return count;
}
