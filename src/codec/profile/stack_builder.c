/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/stack_builder.h"

#include <assert.h>
#include <stdlib.h>

#include "base/budget.h"
#include "base/hash.h"
#include "base/mem.h"

#define BROKE_BYTES ((size_t)1 << 20) /* what was asked for last, about */
#define ID_BYTES 4u		      /* of places in columns, encoded */
#define NUMBER_BYTES 10u
#define MESSAGE_BYTES 16u /* heads and lengths of a message and of what is in it */

void stack_builder_init(struct stack_builder *builder, size_t elements_max, struct budget *budget)
{
	*builder = (struct stack_builder){ .elements_max = elements_max, .budget = budget };
	pprof_init(&builder->profile);
	builder->profile.budget = budget;
	builder->strings = pprof_builder_new(&builder->profile);
}

void stack_builder_free(struct stack_builder *builder)
{
	pprof_free(&builder->profile);
	pprof_builder_free(builder->strings);
	idmap_free(&builder->functions);
	idmap_free(&builder->locations);
	idmap_free(&builder->mappings);
	free(builder->stack);
	budget_give(builder->budget, builder->paid_bytes);
	*builder = (struct stack_builder){ 0 };
}

static bool fill(struct stack_builder *builder, bool is_broke)
{
	builder->full = true;
	builder->is_broke |= is_broke;
	return false;
}

/* Whether the column has room for more elements, which are paid for. */
#define ROOM(builder, column, more)                                                                \
	(!(builder)->full &&                                                                       \
	 (COLUMN_ROOM_PAID(column, (builder)->budget, more, (builder)->elements_max) ||            \
	  fill(builder, (column)->count + (more) <= (builder)->elements_max)))

/* For what a map takes. */
static bool pay_entry(struct stack_builder *builder)
{
	if (builder->full || !budget_take(builder->budget, IDMAP_ENTRY_BYTES_MAX))
		return fill(builder, !builder->full);
	builder->paid_bytes += IDMAP_ENTRY_BYTES_MAX;
	return true;
}

static int64_t text_of(struct stack_builder *builder, struct slice text)
{
	int64_t index = pprof_builder_string(builder->strings, text);

	if (pprof_builder_is_broke(builder->strings))
		fill(builder, true);
	return index;
}

void stack_builder_type(struct stack_builder *builder, const char *type, const char *unit)
{
	struct pprof *profile = &builder->profile;

	if (!ROOM(builder, &profile->sample_types, 1))
		return;
	profile->sample_types.data[profile->sample_types.count++] =
		(struct pprof_value_type){ text_of(builder, slice_of(type)),
					   text_of(builder, slice_of(unit)) };
}

static bool mapping_equal(const void *context, uint32_t id, const void *key)
{
	const struct pprof *profile = context;

	return profile->mappings.data[id].filename == *(const int64_t *)key;
}

static uint64_t mapping_of(struct stack_builder *builder, struct slice path)
{
	struct pprof *profile = &builder->profile;
	int64_t name = text_of(builder, path);
	uint64_t hash = hash_mix(0, (uint64_t)name);
	uint32_t id;

	if (!path.len)
		return 0;
	id = idmap_find(&builder->mappings, hash, mapping_equal, profile, &name);
	if (id != IDMAP_NONE)
		return id + 1;
	if (!ROOM(builder, &profile->mappings, 1) || !pay_entry(builder))
		return 0;
	id = (uint32_t)profile->mappings.count++;
	profile->mappings.data[id] = (struct pprof_mapping){ .id = id + 1,
							     .filename = name,
							     .memory_limit = UINT64_MAX };
	idmap_add(&builder->mappings, hash, id);
	return id + 1;
}

static bool function_equal(const void *context, uint32_t id, const void *key)
{
	const struct pprof_function *a = &((const struct pprof *)context)->functions.data[id];
	const struct pprof_function *b = key;

	return a->name == b->name && a->filename == b->filename;
}

static uint64_t function_of(struct stack_builder *builder, const struct stack_builder_frame *frame)
{
	struct pprof *profile = &builder->profile;
	struct pprof_function wanted = { .name = text_of(builder, frame->name),
					 .filename = text_of(builder, frame->file) };
	uint64_t hash = hash_mix(hash_mix(0, (uint64_t)wanted.name), (uint64_t)wanted.filename);
	uint32_t id = idmap_find(&builder->functions, hash, function_equal, profile, &wanted);

	if (id != IDMAP_NONE)
		return id + 1;
	if (!ROOM(builder, &profile->functions, 1) || !pay_entry(builder))
		return 0;
	id = (uint32_t)profile->functions.count++;
	wanted.id = id + 1;
	profile->functions.data[id] = wanted;
	idmap_add(&builder->functions, hash, id);
	return id + 1;
}

/* A location with its line, if it has one. */
struct place {
	uint64_t mapping_id, address;
	struct pprof_line line; /* function_id 0: none */
};

static bool location_equal(const void *context, uint32_t id, const void *key)
{
	const struct pprof *profile = context;
	const struct pprof_location *a = &profile->locations.data[id];
	const struct place *b = key;
	struct pprof_line none = { 0 };
	const struct pprof_line *line = a->line_count ? &profile->lines.data[a->line_first] : &none;

	return a->mapping_id == b->mapping_id && a->address == b->address &&
	       line->function_id == b->line.function_id && line->line == b->line.line;
}

static uint64_t add_location(struct stack_builder *builder, const struct place *place)
{
	struct pprof *profile = &builder->profile;
	struct pprof_location location = { .mapping_id = place->mapping_id,
					   .address = place->address,
					   .line_first = (uint32_t)profile->lines.count };

	if (!ROOM(builder, &profile->locations, 1) || !ROOM(builder, &profile->lines, 1) ||
	    !pay_entry(builder))
		return 0;
	if (place->line.function_id) {
		profile->lines.data[profile->lines.count++] = place->line;
		location.line_count = 1;
	}
	location.id = profile->locations.count + 1;
	profile->locations.data[profile->locations.count++] = location;
	return location.id;
}

uint64_t stack_builder_location(struct stack_builder *builder,
				const struct stack_builder_frame *frame)
{
	struct place place = { .mapping_id = mapping_of(builder, frame->mapping),
			       .address = frame->address };
	uint64_t hash, id;
	uint32_t found;

	if (frame->name.len) {
		place.line.function_id = function_of(builder, frame);
		place.line.line = frame->line;
	}
	hash = hash_mix(hash_mix(hash_mix(hash_mix(0, place.mapping_id), place.address),
				 place.line.function_id),
			(uint64_t)place.line.line);
	found = idmap_find(&builder->locations, hash, location_equal, &builder->profile, &place);
	if (found != IDMAP_NONE)
		return found + 1;
	id = add_location(builder, &place);
	if (id)
		idmap_add(&builder->locations, hash, (uint32_t)(id - 1));
	return id;
}

void stack_builder_push_id(struct stack_builder *builder, uint64_t location)
{
	if (!location || builder->stack_count == STACK_BUILDER_DEPTH_MAX)
		return;
	mem_grow(builder->stack, builder->stack_count, builder->stack_capacity);
	builder->stack[builder->stack_count++] = location;
}

void stack_builder_push(struct stack_builder *builder, const struct stack_builder_frame *frame)
{
	stack_builder_push_id(builder, stack_builder_location(builder, frame));
}

void stack_builder_sample(struct stack_builder *builder, bool root_first, const int64_t *values)
{
	struct pprof *profile = &builder->profile;
	struct pprof_sample sample = {
		.location_first = (uint32_t)profile->location_ids.count,
		.location_count = (uint32_t)builder->stack_count,
		.value_first = (uint32_t)profile->values.count,
		.value_count = (uint32_t)profile->sample_types.count,
		.label_first = (uint32_t)profile->labels.count,
	};

	if (!ROOM(builder, &profile->samples, 1) ||
	    !ROOM(builder, &profile->location_ids, builder->stack_count + 1) ||
	    !ROOM(builder, &profile->values, sample.value_count + 1))
		return;
	for (size_t i = 0; i < builder->stack_count; i++) {
		size_t at = root_first ? builder->stack_count - 1 - i : i;

		profile->location_ids.data[profile->location_ids.count++] = builder->stack[at];
	}
	for (uint32_t i = 0; i < sample.value_count; i++)
		profile->values.data[profile->values.count++] = values[i];
	profile->samples.data[profile->samples.count++] = sample;
	builder->stack_count = 0;
}

static void add_label(struct stack_builder *builder, const struct pprof_label *label)
{
	struct pprof *profile = &builder->profile;

	if (!profile->samples.count || !ROOM(builder, &profile->labels, 1))
		return;
	profile->labels.data[profile->labels.count++] = *label;
	profile->samples.data[profile->samples.count - 1].label_count++;
}

void stack_builder_label(struct stack_builder *builder, const char *key, struct slice text)
{
	struct pprof_label label = { .key = text_of(builder, slice_of(key)),
				     .str = text_of(builder, text) };

	add_label(builder, &label);
}

void stack_builder_label_number(struct stack_builder *builder, const char *key, int64_t number)
{
	struct pprof_label label = { .key = text_of(builder, slice_of(key)), .num = number };

	add_label(builder, &label);
}

int stack_builder_check(const struct stack_builder *builder, const char *what, struct err *err)
{
	if (builder->is_broke)
		return budget_fail(builder->budget, BROKE_BYTES, what, err);
	if (builder->full)
		return err_set(err, ERR_LIMIT, "%s: more than %zu samples or frames", what,
			       builder->elements_max);
	if (!builder->profile.samples.count)
		return err_set(err, ERR_INVALID, "%s: there is no sample", what);
	return 0;
}

/* At most, of the message that the profile becomes. */
static size_t encoded_bytes_max(const struct pprof *profile)
{
	size_t bytes = 4096 + profile->samples.count * 2 * MESSAGE_BYTES +
		       profile->location_ids.count * ID_BYTES +
		       profile->values.count * NUMBER_BYTES +
		       profile->labels.count * (MESSAGE_BYTES + 2 * ID_BYTES + NUMBER_BYTES) +
		       profile->mappings.count * (2 * MESSAGE_BYTES + 4 * NUMBER_BYTES) +
		       profile->locations.count * (2 * MESSAGE_BYTES + 3 * NUMBER_BYTES) +
		       profile->lines.count * (MESSAGE_BYTES + NUMBER_BYTES) +
		       profile->functions.count * (MESSAGE_BYTES + 4 * ID_BYTES);

	for (size_t i = 0; i < profile->strings.count; i++)
		bytes += profile->strings.data[i].len + MESSAGE_BYTES;
	return bytes;
}

int stack_builder_encode(struct stack_builder *builder, struct strbuf *out, struct err *err)
{
	size_t bytes = encoded_bytes_max(&builder->profile);

	if (!budget_take(builder->budget, bytes))
		return budget_fail(builder->budget, bytes, "encode stacks", err);
	builder->paid_bytes += bytes;
	strbuf_reserve(out, bytes);
	pprof_encode(&builder->profile, out);
	assert(out->len <= bytes);
	return 0;
}
