/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which labels the series have, and what they cost. Each segment has numbers of its own for series
 * and texts, so label sets and values are known by their texts: a set by a hash of its labels, a
 * value by itself. Heads of blocks say how many rows each series has; rows themselves are not read.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "server/persist/store_admin.h"
#include "server/persist/store_int.h"

/* One value of a label; the texts are the arena's. */
struct value {
	uint32_t name; /* of the names */
	struct slice text;
	uint64_t rows;
};

struct counting {
	struct arena arena;
	struct store_label *names;
	size_t names_count, names_capacity;
	struct idmap name_map;
	struct value *values;
	size_t values_count, values_capacity;
	struct idmap value_map;
	uint64_t *sets; /* hashes */
	size_t sets_count, sets_capacity;
	struct idmap set_map;
	/* of the segment at hand, by its series */
	uint64_t *rows, *reports;
};

struct value_key {
	uint32_t name;
	struct slice text;
};

static bool name_equal(const void *context, uint32_t id, const void *key)
{
	const struct counting *counting = context;

	return slice_equal(slice_of(counting->names[id].name), *(const struct slice *)key);
}

static uint32_t name_of(struct counting *counting, struct slice text)
{
	uint64_t hash = hash_bytes(text.data, text.len);
	uint32_t id = idmap_find(&counting->name_map, hash, name_equal, counting, &text);

	if (id != IDMAP_NONE)
		return id;
	mem_grow(counting->names, counting->names_count, counting->names_capacity);
	id = (uint32_t)counting->names_count++;
	counting->names[id] = (struct store_label){ .name = mem_strndup(text.data, text.len) };
	idmap_add(&counting->name_map, hash, id);
	return id;
}

static bool value_equal(const void *context, uint32_t id, const void *key)
{
	const struct counting *counting = context;
	const struct value_key *wanted = key;

	return counting->values[id].name == wanted->name &&
	       slice_equal(counting->values[id].text, wanted->text);
}

static struct value *value_of(struct counting *counting, uint32_t name, struct slice text)
{
	const struct value_key key = { name, text };
	uint64_t hash = hash_pair(name, hash_bytes(text.data, text.len));
	uint32_t id = idmap_find(&counting->value_map, hash, value_equal, counting, &key);

	if (id != IDMAP_NONE)
		return &counting->values[id];
	mem_grow(counting->values, counting->values_count, counting->values_capacity);
	id = (uint32_t)counting->values_count++;
	counting->values[id] = (struct value){ name, arena_copy(&counting->arena, text), 0 };
	counting->names[name].values++;
	idmap_add(&counting->value_map, hash, id);
	return &counting->values[id];
}

static bool set_equal(const void *context, uint32_t id, const void *key)
{
	const struct counting *counting = context;

	return counting->sets[id] == *(const uint64_t *)key;
}

/* True for the first series of these labels. */
static bool is_new_set(struct counting *counting, uint64_t hash)
{
	if (idmap_find(&counting->set_map, hash, set_equal, counting, &hash) != IDMAP_NONE)
		return false;
	mem_grow(counting->sets, counting->sets_count, counting->sets_capacity);
	idmap_add(&counting->set_map, hash, (uint32_t)counting->sets_count);
	counting->sets[counting->sets_count++] = hash;
	return true;
}

/* Sets are sorted by numbers of strings, which differ: so the sum of the labels' hashes. */
static uint64_t hash_set(const struct tables_view *view, const struct label_set *set)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];
		struct slice name = tables_text(view, label->name);
		struct slice value = tables_text(view, label->value);

		sum += hash_pair(hash_bytes(name.data, name.len),
				 hash_bytes(value.data, value.len));
	}
	return sum;
}

static void add_series(struct counting *counting, const struct tables_view *view, uint32_t series)
{
	const struct label_set *set = &view->label_sets[view->series[series].label_set];
	bool is_new = is_new_set(counting, hash_set(view, set));

	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];
		uint32_t name = name_of(counting, tables_text(view, label->name));
		struct value *value = value_of(counting, name, tables_text(view, label->value));
		struct store_label *into = &counting->names[name];

		into->series += is_new;
		into->rows += counting->rows[series];
		into->reports += counting->reports[series];
		value->rows += counting->rows[series];
	}
}

static int count_block(struct counting *counting, const struct segment *segment, uint32_t block,
		       struct segment_buffer *buffer, struct err *err)
{
	struct segment_block found;
	int rc = segment_read(segment, block, SEGMENT_HEADERS, buffer, &found, err);

	for (uint32_t i = 0; i < (rc ? 0 : found.reports_count); i++) {
		const struct segment_report *report = &found.reports[i];

		if (!segment_answers_for(segment, report->start_ns))
			continue;
		assert(report->series < segment->view.series_count);
		counting->rows[report->series] += report->row_count;
		counting->reports[report->series]++;
	}
	return rc;
}

/* What cannot be read is left out: stat and verify say so. */
static void count_segment(struct counting *counting, const struct segment *segment,
			  struct segment_buffer *buffer)
{
	const struct tables_view *view = &segment->view;

	counting->rows = mem_new_array(uint64_t, view->series_count + 1);
	counting->reports = mem_new_array(uint64_t, view->series_count + 1);
	for (uint32_t block = 0; block < segment->blocks_count; block++)
		if (count_block(counting, segment, block, buffer, NULL))
			break;
	for (uint32_t i = 0; i < view->series_count; i++)
		if (counting->reports[i])
			add_series(counting, view, i);
	free(counting->rows);
	free(counting->reports);
}

/* The value of each label that has most rows. */
static void find_largest(struct counting *counting)
{
	for (size_t i = 0; i < counting->values_count; i++) {
		const struct value *value = &counting->values[i];
		struct store_label *into = &counting->names[value->name];

		if (into->largest && value->rows <= into->largest_rows)
			continue;
		free(into->largest);
		into->largest = mem_strndup(value->text.data, value->text.len);
		into->largest_rows = value->rows;
	}
}

static int label_order(const void *left, const void *right)
{
	const struct store_label *a = left, *b = right;

	if (a->values != b->values)
		return a->values > b->values ? -1 : 1;
	return strcmp(a->name, b->name);
}

int store_count_labels(struct store *store, struct store_labels *ret, struct err *err)
{
	const struct store_query all = { .from_ns = INT64_MIN,
					 .to_ns = INT64_MAX,
					 .by_series = true };
	struct segment_buffer buffer = { 0 };
	struct counting counting = { 0 };
	struct store_snapshot snapshot;
	int rc = store_snapshot(store, &all, &snapshot, err);

	*ret = (struct store_labels){ 0 };
	if (rc)
		return rc;
	for (size_t i = 0; i < snapshot.count; i++)
		count_segment(&counting, &snapshot.segments[i], &buffer);
	store_snapshot_release(store, &snapshot);
	segment_buffer_free(&buffer);
	find_largest(&counting);
	if (counting.names_count)
		qsort(counting.names, counting.names_count, sizeof(*counting.names), label_order);
	*ret = (struct store_labels){ counting.names, counting.names_count, counting.sets_count };
	arena_free(&counting.arena);
	idmap_free(&counting.name_map);
	idmap_free(&counting.value_map);
	idmap_free(&counting.set_map);
	free(counting.values);
	free(counting.sets);
	return 0;
}

void store_labels_free(struct store_labels *labels)
{
	for (size_t i = 0; i < labels->count; i++) {
		free(labels->items[i].name);
		free(labels->items[i].largest);
	}
	free(labels->items);
	*labels = (struct store_labels){ 0 };
}
