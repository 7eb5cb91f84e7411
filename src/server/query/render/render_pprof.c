/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_pprof - the tree at full detail as profile.proto.
 *
 * Sampled CPU (samples/count with a period of cpu/nanoseconds) gets both columns that Go writes,
 * samples and cpu, with samples as the default; other types their one column. All names are ours:
 * the mappings say that they are symbolised, so that readers do not try again, and a location
 * without a name carries the function "0x4a3f [libfoo.so]". Group-by values become labels.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"

#include "base/mem.h"
#include "codec/archive/compress.h"
#include "codec/profile/pprof.h"
#include "server/query/render/render.h"
#include "server/query/work.h"

#define GZIP_LEVEL 3

/* Adds an element to a column of the profile and points `item` at it. */
#define ADD(column, item)                                                                          \
	do {                                                                                       \
		mem_grow((column).data, (column).count, (column).capacity);                        \
		(item) = &(column).data[(column).count++];                                         \
	} while (0)

struct writing {
	const struct tree *tree;
	struct pprof profile;
	struct pprof_builder *builder;
	bool with_cpu;		     /* a second column: value x period */
	uint64_t *mapping_ids;	     /* by location */
	uint32_t *mapping_locations; /* by mapping: a location that has it */
};

static int64_t string(struct writing *w, struct slice text)
{
	return pprof_builder_string(w->builder, text);
}

static void write_types(struct writing *w)
{
	const struct profile_type *type = &w->tree->type;
	struct pprof *profile = &w->profile;
	struct pprof_value_type *value_type;

	w->with_cpu = slice_is(type->sample_type, "samples") &&
		      slice_is(type->sample_unit, "count") && slice_is(type->period_type, "cpu") &&
		      slice_is(type->period_unit, "nanoseconds");
	ADD(profile->sample_types, value_type);
	value_type->type = string(w, type->sample_type);
	value_type->unit = string(w, type->sample_unit);
	if (w->with_cpu) {
		ADD(profile->sample_types, value_type);
		value_type->type = string(w, type->period_type);
		value_type->unit = string(w, type->period_unit);
	}
	profile->default_sample_type = string(w, type->sample_type);
	profile->period_type.type = string(w, type->period_type);
	profile->period_type.unit = string(w, type->period_unit);
	profile->period = w->tree->period;
	profile->time_nanos = w->tree->start_ns;
	profile->duration_nanos = w->tree->duration_ns;
}

static bool mapping_equal(const void *context, uint32_t id, const void *key)
{
	const struct writing *w = context;
	const struct tree_location *a = &w->tree->locations[w->mapping_locations[id]], *b = key;

	return slice_equal(a->mapping, b->mapping) && slice_equal(a->build_id, b->build_id);
}

static void write_mapping(struct writing *w, const struct tree_location *location)
{
	struct pprof_mapping *mapping;

	assert(location < w->tree->locations + w->tree->locations_count);
	ADD(w->profile.mappings, mapping);
	*mapping = (struct pprof_mapping){
		.id = w->profile.mappings.count,
		.filename = string(w, location->mapping),
		.build_id = string(w, location->build_id),
		.has_functions = true,
		.has_filenames = true,
		.has_line_numbers = true,
		.has_inline_frames = true,
	};
}

/* One mapping per (path, build id), as long as its highest address. */
static void write_mappings(struct writing *w)
{
	const struct tree *tree = w->tree;
	struct idmap map = { 0 };

	w->mapping_ids = mem_new_array(uint64_t, tree->locations_count);
	w->mapping_locations = mem_new_array(uint32_t, tree->locations_count);
	for (uint32_t i = 0; i < tree->locations_count; i++) {
		const struct tree_location *location = &tree->locations[i];
		uint64_t hash =
			hash_mix(hash_bytes(location->mapping.data, location->mapping.len),
				 hash_bytes(location->build_id.data, location->build_id.len));
		struct pprof_mapping *mapping;
		uint32_t id;

		if (!location->mapping.len && !location->build_id.len)
			continue;
		id = idmap_find(&map, hash, mapping_equal, w, location);
		if (id == IDMAP_NONE) {
			id = (uint32_t)w->profile.mappings.count;
			w->mapping_locations[id] = i;
			write_mapping(w, location);
			idmap_add(&map, hash, id);
		}
		w->mapping_ids[i] = id + 1;
		mapping = &w->profile.mappings.data[id];
		if (location->address >= mapping->memory_limit)
			mapping->memory_limit =
				location->address + (location->address < UINT64_MAX);
	}
	idmap_free(&map);
}

static void write_functions(struct writing *w)
{
	for (uint32_t i = 1; i < w->tree->functions_count; i++) {
		const struct tree_function *from = &w->tree->functions[i];
		struct pprof_function *function;

		if (from->is_label)
			continue;
		ADD(w->profile.functions, function);
		*function = (struct pprof_function){
			.id = i,
			.name = string(w, from->name),
			.system_name = string(w, from->system_name),
			.filename = string(w, from->file),
			.start_line = from->start_line,
		};
	}
}

static void write_locations(struct writing *w)
{
	for (uint32_t i = 0; i < w->tree->locations_count; i++) {
		const struct tree_location *from = &w->tree->locations[i];
		struct pprof_location *location;

		ADD(w->profile.locations, location);
		*location = (struct pprof_location){
			.id = (uint64_t)i + 1,
			.mapping_id = w->mapping_ids[i],
			.address = from->address,
			.line_first = (uint32_t)w->profile.lines.count,
			.line_count = from->line_count,
		};
		for (uint32_t at = 0; at < from->line_count; at++) {
			const struct tree_line *line = &w->tree->lines[from->line_first + at];
			struct pprof_line *into;

			ADD(w->profile.lines, into);
			*into = (struct pprof_line){ line->function, line->line, line->column };
		}
	}
}

static void write_labels(struct writing *w, uint32_t group)
{
	const struct tree *tree = w->tree;

	for (uint32_t i = 0; i < tree->group_names_count; i++) {
		struct slice value =
			tree->group_values[(size_t)group * tree->group_names_count + i];
		struct pprof_label *label;

		if (!value.len)
			continue;
		ADD(w->profile.labels, label);
		*label = (struct pprof_label){ .key = string(w, tree->group_names[i]),
					       .str = string(w, value) };
	}
}

static void write_samples(struct writing *w)
{
	const struct tree *tree = w->tree;

	for (uint32_t i = 0; i < tree->stacks_count; i++) {
		const struct tree_stack *stack = &tree->stacks[i];
		uint32_t label_first = (uint32_t)w->profile.labels.count;
		struct pprof_sample *sample;
		uint64_t *location;
		int64_t *value;

		write_labels(w, stack->group);
		ADD(w->profile.samples, sample);
		*sample = (struct pprof_sample){
			.location_first = (uint32_t)w->profile.location_ids.count,
			.location_count = stack->location_count,
			.value_first = (uint32_t)w->profile.values.count,
			.value_count = w->with_cpu ? 2 : 1,
			.label_first = label_first,
			.label_count = (uint32_t)w->profile.labels.count - label_first,
		};
		for (uint32_t at = 0; at < stack->location_count; at++) {
			ADD(w->profile.location_ids, location);
			*location = (uint64_t)tree->stack_locations[stack->location_first + at] + 1;
		}
		ADD(w->profile.values, value);
		*value = stack->value;
		if (w->with_cpu) {
			ADD(w->profile.values, value);
			*value = work_multiply(stack->value, tree->period);
		}
	}
}

void render_pprof(const struct tree *tree, struct strbuf *out)
{
	struct writing w = { .tree = tree };
	struct strbuf bytes = { 0 };

	pprof_init(&w.profile);
	w.builder = pprof_builder_new(&w.profile);
	write_types(&w);
	write_mappings(&w);
	write_functions(&w);
	write_locations(&w);
	write_samples(&w);
	pprof_encode(&w.profile, &bytes);
	compress_gzip(strbuf_slice(&bytes), GZIP_LEVEL, out);
	strbuf_free(&bytes);
	pprof_builder_free(w.builder);
	pprof_free(&w.profile);
	free(w.mapping_ids);
	free(w.mapping_locations);
}
