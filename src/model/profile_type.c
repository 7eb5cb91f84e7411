/* SPDX-License-Identifier: Apache-2.0 */
#include "model/profile_type.h"

#include <assert.h>

int profile_type_parse(struct slice text, struct profile_type *ret, struct err *err)
{
	struct slice parts[6] = { 0 }, rest = text;
	size_t count = 0;
	bool more = true;

	while (more && count < 6) {
		more = slice_find_byte(rest, ':') != SIZE_MAX;
		parts[count++] = slice_cut(rest, ':', &rest);
	}
	if (more || count < 5 || !parts[0].len || !parts[1].len ||
	    (count == 6 && !slice_is(parts[5], "delta")))
		return err_set(err, ERR_INVALID,
			       "profile type \"%.*s\": expected "
			       "name:sample_type:sample_unit:period_type:period_unit[:delta], for "
			       "example on_cpu:samples:count:cpu:nanoseconds:delta",
			       SLICE_FMT(text));
	*ret = (struct profile_type){
		parts[0], parts[1], parts[2], parts[3], parts[4], count == 6
	};
	return 0;
}

void profile_type_format(struct strbuf *out, const struct profile_type *type)
{
	strbuf_addf(out, "%.*s:%.*s:%.*s:%.*s:%.*s%s", SLICE_FMT(type->name),
		    SLICE_FMT(type->sample_type), SLICE_FMT(type->sample_unit),
		    SLICE_FMT(type->period_type), SLICE_FMT(type->period_unit),
		    type->delta ? ":delta" : "");
}

struct profile_type profile_type_of(const struct tables_view *view, uint32_t group, uint32_t column)
{
	const struct group *g = &view->groups[group];
	const struct column *c = &view->columns[g->column_first + column];

	assert(group < view->groups_count);
	assert(column < view->groups[group].column_count);
	return (struct profile_type){
		.name = tables_text(view, g->name),
		.sample_type = tables_text(view, c->sample_type),
		.sample_unit = tables_text(view, c->sample_unit),
		.period_type = tables_text(view, g->period_type),
		.period_unit = tables_text(view, g->period_unit),
		.delta = c->kind == COLUMN_DELTA,
	};
}

struct profile_type profile_type_copy(const struct profile_type *type, struct arena *arena)
{
	return (struct profile_type){
		.name = arena_copy(arena, type->name),
		.sample_type = arena_copy(arena, type->sample_type),
		.sample_unit = arena_copy(arena, type->sample_unit),
		.period_type = arena_copy(arena, type->period_type),
		.period_unit = arena_copy(arena, type->period_unit),
		.delta = type->delta,
	};
}

bool profile_type_equal(const struct profile_type *a, const struct profile_type *b)
{
	return a->delta == b->delta && slice_equal(a->name, b->name) &&
	       slice_equal(a->sample_type, b->sample_type) &&
	       slice_equal(a->sample_unit, b->sample_unit) &&
	       slice_equal(a->period_type, b->period_type) &&
	       slice_equal(a->period_unit, b->period_unit);
}

bool profile_type_may_be(const struct profile_type *type, struct slice name)
{
	return slice_equal(type->name, name) ||
	       (slice_is(type->name, "process_cpu") && slice_is(name, "on_cpu"));
}
