/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles are written first and collect what they mention in pools; the pools then become the
 * dictionary. Index 0 of every pool is the empty entry, as the format wants it.
 *
 * A location is what one address stands for: a frame, or frames inlined into each other. Such a
 * chain is a linked list in a pool, (frame, chain of the frame it is inlined into), so that equal
 * chains get one id. Addresses that are file offsets get a mapping from 0 to the end of memory,
 * ELF addresses one with start and limit 0, as the OpenTelemetry eBPF profiler writes them.
 */
#include "agent/export/encode_otlp.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "codec/profile/otlp.h"
#include "codec/wire/pb.h"

/* Distinct elements of one size (a whole number of words, no padding), by dense id. */
struct pool {
	uint64_t *words;
	size_t element_words, count, capacity;
	struct idmap map;
};

struct mapping_entry {
	uint64_t file, build_id; /* string indexes */
	uint64_t offsets;	 /* addresses are file offsets */
};
struct function_entry {
	uint64_t name, system_name, file, start_line;
};
struct attribute_entry {
	uint64_t key, numeric, value, unit; /* value: string index, or the number */
};
struct chain_entry {
	uint64_t frame; /* of the view, plus 1 */
	uint64_t outer; /* chain of the frame that this one is inlined into; 0 = none */
};

struct encoder {
	const struct tables_view *view;
	struct strbuf *out;
	struct slice *strings;
	size_t strings_count, strings_capacity;
	struct idmap string_map;
	struct pool mappings, functions, attributes, chains;
	uint64_t *locations; /* location index -> chain */
	size_t locations_count, locations_capacity;
	uint32_t *chain_locations; /* chain -> location index, 0 = none yet */
	size_t chain_locations_count;
	uint32_t *node_stacks; /* node -> stack index, 0 = none yet */
	struct strbuf stacks;  /* the stack table, encoded */
	uint32_t stacks_count;
	uint32_t *trail; /* frames of the chain at hand, innermost first */
	size_t trail_capacity;
};

#define POOL(type)                                                                                 \
	{                                                                                          \
		.element_words = sizeof(type) / sizeof(uint64_t)                                   \
	}

static bool pool_equal(const void *context, uint32_t id, const void *key)
{
	const struct pool *pool = context;

	return !memcmp(pool->words + id * pool->element_words, key,
		       pool->element_words * sizeof(uint64_t));
}

static uint32_t pool_id(struct pool *pool, const void *element)
{
	size_t bytes = pool->element_words * sizeof(uint64_t);
	uint64_t hash = hash_bytes(element, bytes);
	uint32_t id = idmap_find(&pool->map, hash, pool_equal, pool, element);

	if (id != IDMAP_NONE)
		return id;
	if (pool->count == pool->capacity) {
		pool->capacity = pool->capacity ? 2 * pool->capacity : 64;
		pool->words = mem_realloc(pool->words, pool->capacity, bytes);
	}
	id = (uint32_t)pool->count++;
	memcpy(pool->words + id * pool->element_words, element, bytes);
	idmap_add(&pool->map, hash, id);
	return id;
}

static const void *pool_at(const struct pool *pool, uint64_t id)
{
	return pool->words + id * pool->element_words;
}

static void pool_free(struct pool *pool)
{
	free(pool->words);
	idmap_free(&pool->map);
}

static bool string_equal(const void *context, uint32_t id, const void *key)
{
	const struct encoder *encoder = context;

	return slice_equal(encoder->strings[id], *(const struct slice *)key);
}

/* `text` must live as long as the encoder. */
static uint64_t string_id(struct encoder *encoder, struct slice text)
{
	uint64_t hash = hash_bytes(text.data, text.len);
	uint32_t id = idmap_find(&encoder->string_map, hash, string_equal, encoder, &text);

	if (id != IDMAP_NONE)
		return id;
	mem_grow(encoder->strings, encoder->strings_count, encoder->strings_capacity);
	id = (uint32_t)encoder->strings_count++;
	encoder->strings[id] = text;
	idmap_add(&encoder->string_map, hash, id);
	return id;
}

static uint64_t string_of(struct encoder *encoder, uint32_t view_string)
{
	return view_string ? string_id(encoder, tables_text(encoder->view, view_string)) : 0;
}

static uint32_t text_attribute(struct encoder *encoder, const char *key, uint64_t value)
{
	struct attribute_entry entry = { .key = string_id(encoder, slice_of(key)), .value = value };

	return pool_id(&encoder->attributes, &entry);
}

static uint32_t label_attribute(struct encoder *encoder, const struct label *label)
{
	struct attribute_entry entry = { .key = string_of(encoder, label->name),
					 .numeric = label->numeric,
					 .unit = string_of(encoder, label->unit) };

	entry.value = label->numeric ? (uint64_t)label->number : string_of(encoder, label->value);
	return pool_id(&encoder->attributes, &entry);
}

static uint32_t mapping_of(struct encoder *encoder, const struct frame *frame)
{
	struct mapping_entry entry = { .file = string_of(encoder, frame->mapping_file),
				       .build_id = string_of(encoder, frame->build_id),
				       .offsets = frame->flags & FRAME_ADDR_OFFSET };

	return pool_id(&encoder->mappings, &entry);
}

static uint32_t function_of(struct encoder *encoder, const struct frame *frame)
{
	struct function_entry entry = { string_of(encoder, frame->function),
					string_of(encoder, frame->system_name),
					string_of(encoder, frame->file), frame->start_line };

	return pool_id(&encoder->functions, &entry);
}

/* True if `inner` can be a line of the location that `outer` belongs to. */
static bool same_place(const struct frame *inner, const struct frame *outer)
{
	uint32_t flags = inner->flags ^ outer->flags;

	return inner->function && outer->function && inner->kind == outer->kind &&
	       inner->address == outer->address && inner->mapping_file == outer->mapping_file &&
	       inner->build_id == outer->build_id && !(flags & ~(uint32_t)FRAME_INLINED);
}

static const struct frame *frame_at(const struct encoder *encoder, uint32_t node)
{
	return &encoder->view->frames[encoder->view->nodes[node].frame];
}

/* The location index of a chain. */
static uint32_t location_of(struct encoder *encoder, uint32_t chain)
{
	while (encoder->chain_locations_count <= chain) {
		size_t count = encoder->chain_locations_count;
		size_t more = count ? count : 64;

		encoder->chain_locations =
			mem_realloc(encoder->chain_locations, count + more, sizeof(uint32_t));
		memset(encoder->chain_locations + count, 0, more * sizeof(uint32_t));
		encoder->chain_locations_count += more;
	}
	if (!encoder->chain_locations[chain]) {
		mem_grow(encoder->locations, encoder->locations_count, encoder->locations_capacity);
		encoder->chain_locations[chain] = (uint32_t)encoder->locations_count;
		encoder->locations[encoder->locations_count++] = chain;
	}
	return encoder->chain_locations[chain];
}

/* The location that the node begins, towards the root; *node becomes the next one's. */
static uint32_t next_location(struct encoder *encoder, uint32_t *node)
{
	const struct node *nodes = encoder->view->nodes;
	struct chain_entry entry = { 0 };
	size_t count = 0;
	bool more = true;

	while (more) {
		const struct frame *frame = frame_at(encoder, *node);
		uint32_t parent = nodes[*node].parent;

		mem_grow(encoder->trail, count, encoder->trail_capacity);
		encoder->trail[count++] = nodes[*node].frame;
		more = (frame->flags & FRAME_INLINED) && parent &&
		       same_place(frame, frame_at(encoder, parent));
		*node = parent;
	}
	while (count) {
		entry.frame = (uint64_t)encoder->trail[--count] + 1;
		entry.outer = pool_id(&encoder->chains, &entry);
	}
	return location_of(encoder, (uint32_t)entry.outer);
}

static uint32_t stack_of(struct encoder *encoder, uint32_t node)
{
	size_t stack_begun, packed_begun;
	uint32_t walk = node;

	if (!node || encoder->node_stacks[node])
		return encoder->node_stacks[node];
	stack_begun = pb_begin(&encoder->stacks, OTLP_DICTIONARY_STACK_TABLE);
	packed_begun = pb_begin(&encoder->stacks, OTLP_STACK_LOCATION_INDICES);
	while (walk)
		strbuf_add_varint(&encoder->stacks, next_location(encoder, &walk));
	pb_end(&encoder->stacks, packed_begun);
	pb_end(&encoder->stacks, stack_begun);
	encoder->node_stacks[node] = encoder->stacks_count++;
	return encoder->node_stacks[node];
}

static void put_text_value(struct strbuf *out, uint32_t field, struct slice text)
{
	size_t begun = pb_begin(out, field);

	pb_put_bytes_always(out, OTLP_ANY_STRING, text);
	pb_end(out, begun);
}

static void put_resource(struct encoder *encoder, const struct label_set *set)
{
	const struct tables_view *view = encoder->view;
	size_t resource_begun = pb_begin(encoder->out, OTLP_RESOURCE_PROFILES_RESOURCE);

	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];
		size_t begun = pb_begin(encoder->out, OTLP_RESOURCE_ATTRIBUTES);

		pb_put_bytes(encoder->out, OTLP_KEY_VALUE_KEY, tables_text(view, label->name));
		put_text_value(encoder->out, OTLP_KEY_VALUE_VALUE, tables_text(view, label->value));
		pb_end(encoder->out, begun);
	}
	pb_end(encoder->out, resource_begun);
}

static void put_value_type(struct encoder *encoder, uint32_t field, uint32_t type, uint32_t unit)
{
	size_t begun = pb_begin(encoder->out, field);

	pb_put_varint(encoder->out, OTLP_VALUE_TYPE_TYPE, string_of(encoder, type));
	pb_put_varint(encoder->out, OTLP_VALUE_TYPE_UNIT, string_of(encoder, unit));
	pb_end(encoder->out, begun);
}

/* Samples of one row: `value` of them, or those at so many times, which then count one each. */
static void put_sample(struct encoder *encoder, const struct report *report, uint32_t row_number,
		       int64_t value, const struct moment *moments, uint32_t moments_count)
{
	const struct row *row = &encoder->view->rows[report->row_first + row_number];
	const struct label_set *set = &encoder->view->label_sets[row->label_set];
	uint64_t attributes[TABLES_LABELS_PER_SET_MAX];
	uint64_t word = (uint64_t)value;
	size_t begun = pb_begin(encoder->out, OTLP_PROFILE_SAMPLES);

	for (uint32_t i = 0; i < set->label_count; i++)
		attributes[i] =
			label_attribute(encoder, &encoder->view->labels[set->label_first + i]);
	pb_put_varint(encoder->out, OTLP_SAMPLE_STACK_INDEX, stack_of(encoder, row->stack));
	pb_put_packed(encoder->out, OTLP_SAMPLE_ATTRIBUTE_INDICES, attributes, set->label_count);
	pb_put_packed(encoder->out, OTLP_SAMPLE_VALUES, &word, !moments_count);
	if (moments_count) {
		size_t packed_begun = pb_begin(encoder->out, OTLP_SAMPLE_TIMESTAMPS_UNIX_NANO);

		for (uint32_t i = 0; i < moments_count; i++)
			strbuf_add_u64(encoder->out,
				       (uint64_t)report->start_ns +
					       (uint64_t)moments[i].tick * TABLES_TICK_NS);
		pb_end(encoder->out, packed_begun);
	}
	pb_end(encoder->out, begun);
}

/*
 * The samples of a row whose times are known, if so, then the others. The times of a report are
 * ordered by row: *moment is the first that is not of an earlier one.
 */
static void put_row(struct encoder *encoder, const struct report *report, uint32_t row,
		    int64_t value, uint32_t *moment)
{
	const struct moment *moments = encoder->view->moments + report->moment_first;
	uint32_t first = *moment, count;

	while (*moment < report->moment_count && moments[*moment].row == row)
		++*moment;
	count = *moment - first;
	while (count && moments[first + count - 1].tick == UINT32_MAX)
		count--; /* the time of this one is not known */
	if (count && count <= value) {
		put_sample(encoder, report, row, 0, &moments[first], count);
		value -= count;
	}
	if (value)
		put_sample(encoder, report, row, value, NULL, 0);
}

/* A report sent again has the same id, so that the server counts it once. */
static void put_profile_id(struct encoder *encoder, const struct report *report)
{
	struct strbuf id = { 0 };

	strbuf_add_u64(&id, report->batch_id);
	strbuf_add_u64(&id, (uint64_t)report->start_ns);
	pb_put_bytes(encoder->out, OTLP_PROFILE_PROFILE_ID, strbuf_slice(&id));
	strbuf_free(&id);
}

static void put_profile(struct encoder *encoder, const struct report *report,
			const struct group *group, uint32_t column)
{
	const struct tables_view *view = encoder->view;
	const struct column *type = &view->columns[group->column_first + column];
	const int64_t *values = view->values + report->value_first + column;
	size_t begun = pb_begin(encoder->out, OTLP_SCOPE_PROFILES_PROFILES);
	uint32_t moment = 0;

	put_value_type(encoder, OTLP_PROFILE_SAMPLE_TYPE, type->sample_type, type->sample_unit);
	for (uint32_t i = 0; i < report->row_count; i++)
		put_row(encoder, report, i, values[(size_t)i * group->column_count], &moment);
	pb_put_fixed64(encoder->out, OTLP_PROFILE_TIME_UNIX_NANO, (uint64_t)report->start_ns);
	pb_put_varint(encoder->out, OTLP_PROFILE_DURATION_NANO, (uint64_t)report->duration_ns);
	put_value_type(encoder, OTLP_PROFILE_PERIOD_TYPE, group->period_type, group->period_unit);
	pb_put_varint(encoder->out, OTLP_PROFILE_PERIOD, (uint64_t)group->period);
	put_profile_id(encoder, report);
	pb_end(encoder->out, begun);
}

/* Reports order[first .. end) are of one series. */
static void put_series(struct encoder *encoder, const uint32_t *order, size_t first, size_t end)
{
	const struct tables_view *view = encoder->view;
	const struct series *series = &view->series[view->reports[order[first]].series];
	const struct group *group = &view->groups[series->group];
	size_t resource_begun = pb_begin(encoder->out, OTLP_REQUEST_RESOURCE_PROFILES);
	size_t scope_begun, name_begun;

	put_resource(encoder, &view->label_sets[series->label_set]);
	scope_begun = pb_begin(encoder->out, OTLP_RESOURCE_PROFILES_SCOPE_PROFILES);
	name_begun = pb_begin(encoder->out, OTLP_SCOPE_PROFILES_SCOPE);
	pb_put_bytes(encoder->out, OTLP_SCOPE_NAME, tables_text(view, group->name));
	pb_end(encoder->out, name_begun);
	for (size_t i = first; i < end; i++)
		for (uint32_t column = 0; column < group->column_count; column++)
			put_profile(encoder, &view->reports[order[i]], group, column);
	pb_end(encoder->out, scope_begun);
	pb_end(encoder->out, resource_begun);
}

static int report_order(const void *left, const void *right, void *context)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct tables_view *view = context;
	uint32_t series_a = view->reports[a].series, series_b = view->reports[b].series;

	if (series_a != series_b)
		return series_a < series_b ? -1 : 1;
	return (a > b) - (a < b);
}

static void put_reports(struct encoder *encoder)
{
	const struct tables_view *view = encoder->view;
	uint32_t *order = mem_new_array(uint32_t, view->reports_count + (size_t)1);
	size_t first = 0;

	for (uint32_t i = 0; i < view->reports_count; i++)
		order[i] = i;
	qsort_r(order, view->reports_count, sizeof(*order), report_order, (void *)(uintptr_t)view);
	for (size_t end = 1; end <= view->reports_count; end++) {
		if (end < view->reports_count &&
		    view->reports[order[end]].series == view->reports[order[first]].series)
			continue;
		put_series(encoder, order, first, end);
		first = end;
	}
	free(order);
}

static void put_mapping(struct encoder *encoder, const struct mapping_entry *entry)
{
	uint64_t build_id = 0;
	size_t begun;

	if (entry->build_id)
		build_id =
			text_attribute(encoder, "process.executable.build_id.gnu", entry->build_id);
	begun = pb_begin(encoder->out, OTLP_DICTIONARY_MAPPING_TABLE);
	if (entry->offsets)
		pb_put_varint(encoder->out, OTLP_MAPPING_MEMORY_LIMIT, UINT64_MAX);
	pb_put_varint(encoder->out, OTLP_MAPPING_FILENAME, entry->file);
	pb_put_packed(encoder->out, OTLP_MAPPING_ATTRIBUTE_INDICES, &build_id, build_id != 0);
	pb_end(encoder->out, begun);
}

static void put_line(struct encoder *encoder, const struct frame *frame)
{
	size_t begun = pb_begin(encoder->out, OTLP_LOCATION_LINES);

	pb_put_varint(encoder->out, OTLP_LINE_FUNCTION_INDEX, function_of(encoder, frame));
	pb_put_varint(encoder->out, OTLP_LINE_LINE, frame->line);
	pb_put_varint(encoder->out, OTLP_LINE_COLUMN, frame->column);
	pb_end(encoder->out, begun);
}

static void put_location(struct encoder *encoder, uint64_t chain)
{
	const struct chain_entry *entry = pool_at(&encoder->chains, chain);
	const struct frame *frame = &encoder->view->frames[entry->frame - 1];
	const char *kind_name = frame_kind_name((enum frame_kind)frame->kind);
	uint64_t kind = 0;
	size_t begun;

	if (frame->kind != FRAME_UNKNOWN)
		kind = text_attribute(encoder, "profile.frame.type",
				      string_id(encoder, slice_of(kind_name)));
	begun = pb_begin(encoder->out, OTLP_DICTIONARY_LOCATION_TABLE);
	pb_put_varint(encoder->out, OTLP_LOCATION_MAPPING_INDEX, mapping_of(encoder, frame));
	pb_put_varint(encoder->out, OTLP_LOCATION_ADDRESS, frame->address);
	for (;; entry = pool_at(&encoder->chains, entry->outer)) {
		frame = &encoder->view->frames[entry->frame - 1];
		if (frame->function)
			put_line(encoder, frame);
		if (!entry->outer)
			break;
	}
	pb_put_packed(encoder->out, OTLP_LOCATION_ATTRIBUTE_INDICES, &kind, kind != 0);
	pb_end(encoder->out, begun);
}

static void put_function(struct encoder *encoder, const struct function_entry *entry)
{
	size_t begun = pb_begin(encoder->out, OTLP_DICTIONARY_FUNCTION_TABLE);

	pb_put_varint(encoder->out, OTLP_FUNCTION_NAME, entry->name);
	pb_put_varint(encoder->out, OTLP_FUNCTION_SYSTEM_NAME, entry->system_name);
	pb_put_varint(encoder->out, OTLP_FUNCTION_FILENAME, entry->file);
	pb_put_varint(encoder->out, OTLP_FUNCTION_START_LINE, entry->start_line);
	pb_end(encoder->out, begun);
}

static void put_attribute(struct encoder *encoder, const struct attribute_entry *entry)
{
	size_t begun = pb_begin(encoder->out, OTLP_DICTIONARY_ATTRIBUTE_TABLE);
	size_t value_begun;

	pb_put_varint(encoder->out, OTLP_ATTRIBUTE_KEY, entry->key);
	if (entry->numeric) {
		value_begun = pb_begin(encoder->out, OTLP_ATTRIBUTE_VALUE);
		pb_put_varint_always(encoder->out, OTLP_ANY_INT, entry->value);
		pb_end(encoder->out, value_begun);
	} else if (entry->key) {
		put_text_value(encoder->out, OTLP_ATTRIBUTE_VALUE, encoder->strings[entry->value]);
	}
	pb_put_varint(encoder->out, OTLP_ATTRIBUTE_UNIT, entry->unit);
	pb_end(encoder->out, begun);
}

static void put_empty(struct encoder *encoder, uint32_t table)
{
	pb_put_bytes_always(encoder->out, table, SLICE_LITERAL(""));
}

/* Each table mentions only tables after it, so that writing one completes the others. */
static void put_dictionary(struct encoder *encoder)
{
	size_t begun = pb_begin(encoder->out, OTLP_REQUEST_DICTIONARY);

	put_empty(encoder, OTLP_DICTIONARY_STACK_TABLE);
	strbuf_add_slice(encoder->out, strbuf_slice(&encoder->stacks));
	put_empty(encoder, OTLP_DICTIONARY_LOCATION_TABLE);
	for (size_t i = 1; i < encoder->locations_count; i++)
		put_location(encoder, encoder->locations[i]);
	for (size_t i = 0; i < encoder->mappings.count; i++)
		put_mapping(encoder, pool_at(&encoder->mappings, i));
	for (size_t i = 0; i < encoder->functions.count; i++)
		put_function(encoder, pool_at(&encoder->functions, i));
	put_empty(encoder, OTLP_DICTIONARY_LINK_TABLE);
	for (size_t i = 0; i < encoder->attributes.count; i++)
		put_attribute(encoder, pool_at(&encoder->attributes, i));
	for (size_t i = 0; i < encoder->strings_count; i++)
		pb_put_bytes_always(encoder->out, OTLP_DICTIONARY_STRING_TABLE,
				    encoder->strings[i]);
	pb_end(encoder->out, begun);
}

/* Takes index 0 of every pool. */
static void begin(struct encoder *encoder)
{
	static const uint64_t nothing[4];

	string_id(encoder, SLICE_LITERAL(""));
	pool_id(&encoder->mappings, nothing);
	pool_id(&encoder->functions, nothing);
	pool_id(&encoder->attributes, nothing);
	pool_id(&encoder->chains, nothing);
	mem_grow(encoder->locations, encoder->locations_count, encoder->locations_capacity);
	encoder->locations[encoder->locations_count++] = 0;
	encoder->stacks_count = 1;
	encoder->node_stacks = mem_new_array(uint32_t, encoder->view->nodes_count);
}

static void end(struct encoder *encoder)
{
	free(encoder->strings);
	idmap_free(&encoder->string_map);
	pool_free(&encoder->mappings);
	pool_free(&encoder->functions);
	pool_free(&encoder->attributes);
	pool_free(&encoder->chains);
	free(encoder->locations);
	free(encoder->chain_locations);
	free(encoder->node_stacks);
	strbuf_free(&encoder->stacks);
	free(encoder->trail);
}

void encode_otlp(const struct tables_view *view, struct strbuf *out)
{
	struct encoder encoder = { .view = view,
				   .out = out,
				   .mappings = POOL(struct mapping_entry),
				   .functions = POOL(struct function_entry),
				   .attributes = POOL(struct attribute_entry),
				   .chains = POOL(struct chain_entry) };

	if (!view->reports_count)
		return; /* an empty request is a valid one */
	begin(&encoder);
	put_reports(&encoder);
	put_dictionary(&encoder);
	end(&encoder);
}
