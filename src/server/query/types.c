/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/types.h"

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

/* Whether all reports of the series are left out: it is another tenant's, or was deleted. */
static bool is_left_out(const struct segment *segment, uint32_t series)
{
	for (uint32_t i = 0; i < segment->deletions_count; i++) {
		const struct segment_deletion *deletion = &segment->deletions[i];

		if (deletion->series[series] && deletion->from_ns == INT64_MIN &&
		    deletion->to_ns == INT64_MAX)
			return true;
	}
	return false;
}

static bool has_series(const struct segment *segment, uint32_t group)
{
	if (!segment->deletions_count)
		return true;
	for (uint32_t i = 0; i < segment->view.series_count; i++)
		if (segment->view.series[i].group == group && !is_left_out(segment, i))
			return true;
	return false;
}

static bool is_stored(const struct query_source *source, const struct profile_type *type)
{
	for (size_t i = 0; i < source->segments_count; i++) {
		const struct tables_view *view = &source->segments[i].view;

		for (uint32_t group = 0; group < view->groups_count; group++)
			if (types_column(view, group, type) != TYPES_NO_COLUMN &&
			    has_series(&source->segments[i], group))
				return true;
	}
	return false;
}

struct types_answer types_find(const struct query_source *source, const struct profile_type *asked)
{
	struct types_answer itself = { *asked, false };
	struct profile_type delta = *asked;

	if (is_stored(source, asked))
		return itself;
	delta.delta = true;
	if (is_stored(source, &delta))
		return (struct types_answer){ delta, false };
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (profile_type_equal(&aliases[i].asked, &delta) &&
		    is_stored(source, &aliases[i].answer.stored))
			return aliases[i].answer;
	return itself;
}
