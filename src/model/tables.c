/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tables.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"
#include "model/tables_int.h"

#define RESET_KEEP_BYTES ((size_t)256 * 1024) /* per array */

#define AT(array, type, index) (&((type *)(array).data)[index])
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* The members of a set of tables, for what is done to all of them. */
struct parts {
	struct vmarray *arrays[15];
	struct idmap *maps[7];
};

static struct parts parts_of(struct tables *t)
{
	return (struct parts){
		{ &t->string_bytes, &t->strings, &t->labels, &t->label_sets, &t->columns,
		  &t->groups, &t->series, &t->frames, &t->nodes, &t->reports, &t->rows, &t->values,
		  &t->totals, &t->moments, &t->links },
		{ &t->string_map, &t->label_set_map, &t->group_map, &t->series_map, &t->frame_map,
		  &t->node_map, &t->link_map },
	};
}

static_assert(sizeof(struct tables) == 15 * sizeof(struct vmarray) + 7 * sizeof(struct idmap),
	      "parts_of lists every member");

void tables_init(struct tables *tables)
{
	*tables = (struct tables){ 0 };
	vmarray_init(&tables->string_bytes, 1, TABLES_STRING_BYTES_MAX);
	vmarray_init(&tables->strings, sizeof(struct string_ref), TABLES_IDS_MAX);
	vmarray_init(&tables->labels, sizeof(struct label), TABLES_IDS_MAX);
	vmarray_init(&tables->label_sets, sizeof(struct label_set), TABLES_IDS_MAX);
	vmarray_init(&tables->columns, sizeof(struct column), TABLES_IDS_MAX);
	vmarray_init(&tables->groups, sizeof(struct group), TABLES_IDS_MAX);
	vmarray_init(&tables->series, sizeof(struct series), TABLES_IDS_MAX);
	vmarray_init(&tables->frames, sizeof(struct frame), TABLES_IDS_MAX);
	vmarray_init(&tables->nodes, sizeof(struct node), TABLES_NODES_MAX);
	vmarray_init(&tables->reports, sizeof(struct report), TABLES_IDS_MAX);
	vmarray_init(&tables->rows, sizeof(struct row), TABLES_ROWS_MAX);
	vmarray_init(&tables->values, sizeof(int64_t), TABLES_VALUES_MAX);
	vmarray_init(&tables->totals, sizeof(int64_t), TABLES_VALUES_MAX);
	vmarray_init(&tables->moments, sizeof(struct moment), TABLES_MOMENTS_MAX);
	vmarray_init(&tables->links, sizeof(struct trace_link), TABLES_IDS_MAX);
	tables_reset(tables);
}

void tables_free(struct tables *tables)
{
	struct parts parts = parts_of(tables);

	for (size_t i = 0; i < LENGTH(parts.arrays); i++)
		vmarray_free(parts.arrays[i]);
	for (size_t i = 0; i < LENGTH(parts.maps); i++)
		idmap_free(parts.maps[i]);
}

static size_t map_bytes(const struct idmap *map)
{
	return map->slots ? ((size_t)map->mask + 1) * sizeof(*map->slots) : 0;
}

/* One large request must not make each later reset wipe as much. */
static void reset_map(struct idmap *map)
{
	if (map_bytes(map) > RESET_KEEP_BYTES)
		idmap_free(map);
	else
		idmap_clear(map);
}

void tables_reset(struct tables *tables)
{
	struct parts parts = parts_of(tables);

	for (size_t i = 0; i < LENGTH(parts.arrays); i++)
		vmarray_reset(parts.arrays[i], RESET_KEEP_BYTES);
	for (size_t i = 0; i < LENGTH(parts.maps); i++)
		reset_map(parts.maps[i]);
	tables_string(tables, (struct slice){ "", 0 });
	tables_label_set(tables, NULL, 0);
	vmarray_add(&tables->nodes, 1);
	vmarray_add(&tables->links, 1);
}

size_t tables_bytes(const struct tables *tables)
{
	const struct parts parts = parts_of((struct tables *)tables);
	size_t bytes = 0;

	for (size_t i = 0; i < LENGTH(parts.arrays); i++)
		bytes += parts.arrays[i]->count * parts.arrays[i]->element_bytes;
	for (size_t i = 0; i < LENGTH(parts.maps); i++)
		bytes += map_bytes(parts.maps[i]);
	return bytes;
}

struct tables_view tables_view_of(const struct tables *tables)
{
	return (struct tables_view){
		.string_bytes = tables->string_bytes.data,
		.strings = tables->strings.data,
		.labels = tables->labels.data,
		.label_sets = tables->label_sets.data,
		.columns = tables->columns.data,
		.groups = tables->groups.data,
		.series = tables->series.data,
		.frames = tables->frames.data,
		.nodes = tables->nodes.data,
		.reports = tables->reports.data,
		.rows = tables->rows.data,
		.values = tables->values.data,
		.totals = tables->totals.data,
		.moments = tables->moments.data,
		.links = tables->links.data,
		.string_bytes_count = tables->string_bytes.count,
		.rows_count = tables->rows.count,
		.values_count = tables->values.count,
		.totals_count = tables->totals.count,
		.moments_count = tables->moments.count,
		.strings_count = (uint32_t)tables->strings.count,
		.labels_count = (uint32_t)tables->labels.count,
		.label_sets_count = (uint32_t)tables->label_sets.count,
		.columns_count = (uint32_t)tables->columns.count,
		.groups_count = (uint32_t)tables->groups.count,
		.series_count = (uint32_t)tables->series.count,
		.frames_count = (uint32_t)tables->frames.count,
		.nodes_count = (uint32_t)tables->nodes.count,
		.reports_count = (uint32_t)tables->reports.count,
		.links_count = (uint32_t)tables->links.count,
	};
}

/* Adds one element and returns its id, or TABLES_FULL. */
static uint32_t append(struct vmarray *array, const void *element)
{
	void *place = vmarray_add(array, 1);

	if (!place)
		return TABLES_FULL;
	memcpy(place, element, array->element_bytes);
	return (uint32_t)(array->count - 1);
}

static struct slice text_of(const struct tables *tables, uint32_t id)
{
	const struct string_ref *ref = AT(tables->strings, struct string_ref, id);

	return slice_from(AT(tables->string_bytes, char, ref->offset), ref->len);
}

static bool string_equal(const void *context, uint32_t id, const void *key)
{
	return slice_equal(text_of(context, id), *(const struct slice *)key);
}

uint32_t tables_find_string(const struct tables *tables, struct slice text)
{
	uint32_t id = idmap_find(&tables->string_map, hash_bytes(text.data, text.len), string_equal,
				 tables, &text);

	return id == IDMAP_NONE ? TABLES_FULL : id;
}

uint32_t tables_string(struct tables *tables, struct slice text)
{
	uint64_t hash = hash_bytes(text.data, text.len);
	uint32_t id = idmap_find(&tables->string_map, hash, string_equal, tables, &text);
	struct string_ref ref = { tables->string_bytes.count, (uint32_t)text.len };
	char *bytes;

	if (id != IDMAP_NONE)
		return id;
	if (text.len > UINT32_MAX || !vmarray_room(&tables->strings))
		return TABLES_FULL;
	bytes = vmarray_add(&tables->string_bytes, text.len);
	if (!bytes)
		return TABLES_FULL;
	if (text.len)
		memcpy(bytes, text.data, text.len);
	id = append(&tables->strings, &ref);
	idmap_add(&tables->string_map, hash, id);
	return id;
}

/* Structs without padding are hashed and compared as bytes. */
static_assert(sizeof(struct frame) == 48, "no padding");
static_assert(sizeof(struct node) == 8, "no padding");
static_assert(sizeof(struct label) == 24, "no padding");
static_assert(sizeof(struct column) == 12, "no padding");
static_assert(sizeof(struct series) == 8, "no padding");

/* True if an id names a string; false for TABLES_FULL, which a caller may pass on unseen. */
static bool has_string(const struct tables *tables, uint32_t id)
{
	assert(id < tables->strings.count || id == TABLES_FULL);
	return id != TABLES_FULL;
}

static bool frame_equal(const void *context, uint32_t id, const void *key)
{
	const struct tables *tables = context;
	struct frame have = frame_identity(AT(tables->frames, struct frame, id));
	struct frame wanted = frame_identity(key);

	return !memcmp(&have, &wanted, sizeof(have));
}

/* False for strings that did not fit. */
static bool has_strings(const struct tables *tables, const struct frame *frame)
{
	return has_string(tables, frame->mapping_file) && has_string(tables, frame->build_id) &&
	       has_string(tables, frame->function) && has_string(tables, frame->system_name) &&
	       has_string(tables, frame->file);
}

uint32_t tables_frame(struct tables *tables, const struct frame *frame)
{
	uint64_t hash = tables_hash_frame(frame);
	uint32_t id;

	if (!has_strings(tables, frame))
		return TABLES_FULL;
	id = idmap_find(&tables->frame_map, hash, frame_equal, tables, frame);
	if (id != IDMAP_NONE)
		return id;
	id = append(&tables->frames, frame);
	if (id != TABLES_FULL)
		idmap_add(&tables->frame_map, hash, id);
	return id;
}

struct frame *tables_new_frame(struct tables *tables, const struct frame *like, uint32_t *ret_id)
{
	struct frame *frame = vmarray_add(&tables->frames, 1);

	if (!frame)
		return NULL;
	*frame = *like;
	*ret_id = (uint32_t)(tables->frames.count - 1);
	return frame;
}

uint32_t tables_add_frame(struct tables *tables, const struct frame *frame)
{
	uint32_t id;

	return has_strings(tables, frame) && tables_new_frame(tables, frame, &id) ? id
										  : TABLES_FULL;
}

static bool node_equal(const void *context, uint32_t id, const void *key)
{
	const struct tables *tables = context;

	return !memcmp(AT(tables->nodes, struct node, id), key, sizeof(struct node));
}

uint32_t tables_add_node(struct tables *tables, uint32_t parent, uint32_t frame)
{
	struct node *node;

	if (parent == TABLES_FULL || frame == TABLES_FULL)
		return TABLES_FULL;
	assert(parent < tables->nodes.count && frame < tables->frames.count);
	node = vmarray_add(&tables->nodes, 1);
	if (!node)
		return TABLES_FULL;
	node->parent = parent;
	node->frame = frame;
	return (uint32_t)(tables->nodes.count - 1);
}

uint32_t tables_add_path(struct tables *tables, uint32_t parent, const uint32_t *frames,
			 uint32_t count)
{
	uint32_t first = (uint32_t)tables->nodes.count;
	struct node *nodes = parent == TABLES_FULL ? NULL : vmarray_add(&tables->nodes, count);

	if (!nodes)
		return TABLES_FULL;
	assert(parent < first);
	for (uint32_t i = 0; i < count; i++) {
		assert(frames[i] < tables->frames.count);
		nodes[i] = (struct node){ i ? first + i - 1 : parent, frames[i] };
	}
	return first;
}

uint32_t tables_new_node(struct tables *tables, uint32_t parent, uint32_t frame)
{
	struct node node = { parent, frame };
	uint32_t id = tables_add_node(tables, parent, frame);

	if (id != TABLES_FULL)
		idmap_add(&tables->node_map, tables_hash_node(&node), id);
	return id;
}

uint32_t tables_node(struct tables *tables, uint32_t parent, uint32_t frame)
{
	struct node node = { parent, frame };
	uint32_t id;

	if (parent == TABLES_FULL || frame == TABLES_FULL)
		return TABLES_FULL;
	id = idmap_find(&tables->node_map, tables_hash_node(&node), node_equal, tables, &node);
	return id == IDMAP_NONE ? tables_new_node(tables, parent, frame) : id;
}

static int label_order(const void *left, const void *right, void *context)
{
	const struct label *a = left, *b = right;
	int order = slice_compare(text_of(context, a->name), text_of(context, b->name));

	if (order)
		return order;
	order = slice_compare(text_of(context, a->value), text_of(context, b->value));
	if (order)
		return order;
	if (a->numeric != b->numeric)
		return a->numeric < b->numeric ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->unit > b->unit) - (a->unit < b->unit);
}

struct label_set_key {
	const struct label *labels;
	uint32_t count;
};

static bool label_set_equal(const void *context, uint32_t id, const void *key)
{
	const struct tables *tables = context;
	const struct label_set *set = AT(tables->label_sets, struct label_set, id);
	const struct label_set_key *want = key;

	if (set->label_count != want->count)
		return false;
	return !want->count || !memcmp(AT(tables->labels, struct label, set->label_first),
				       want->labels, want->count * sizeof(struct label));
}

uint32_t tables_label_set(struct tables *tables, struct label *labels, uint32_t count)
{
	struct label_set_key key = { labels, 0 };
	struct label_set set = { (uint32_t)tables->labels.count, 0 };
	uint64_t hash;
	uint32_t id;

	assert(count <= TABLES_LABELS_PER_SET_MAX);
	for (uint32_t i = 0; i < count; i++)
		if (!has_string(tables, labels[i].name) || !has_string(tables, labels[i].value) ||
		    !has_string(tables, labels[i].unit))
			return TABLES_FULL;
	if (count)
		qsort_r(labels, count, sizeof(*labels), label_order, tables);
	for (uint32_t i = 0; i < count; i++)
		if (!key.count || memcmp(&labels[key.count - 1], &labels[i], sizeof(*labels)))
			labels[key.count++] = labels[i];
	hash = hash_bytes(labels, key.count * sizeof(*labels));
	id = idmap_find(&tables->label_set_map, hash, label_set_equal, tables, &key);
	if (id != IDMAP_NONE)
		return id;
	if (vmarray_room(&tables->labels) < key.count || !vmarray_room(&tables->label_sets))
		return TABLES_FULL;
	for (uint32_t i = 0; i < key.count; i++)
		append(&tables->labels, &labels[i]);
	set.label_count = key.count;
	id = append(&tables->label_sets, &set);
	idmap_add(&tables->label_set_map, hash, id);
	return id;
}

struct group_key {
	const struct group *group;
	const struct column *columns;
};

static bool group_equal(const void *context, uint32_t id, const void *key)
{
	const struct tables *tables = context;
	const struct group *a = AT(tables->groups, struct group, id);
	const struct group_key *want = key;
	const struct group *b = want->group;

	if (a->name != b->name || a->period_type != b->period_type ||
	    a->period_unit != b->period_unit || a->period != b->period ||
	    a->column_count != b->column_count)
		return false;
	return !memcmp(AT(tables->columns, struct column, a->column_first), want->columns,
		       b->column_count * sizeof(struct column));
}

uint32_t tables_group(struct tables *tables, const struct group *group,
		      const struct column *columns)
{
	struct group_key key = { group, columns };
	struct group added = *group;
	uint64_t hash = hash_mix(group->name, (uint64_t)group->period);
	uint32_t id;

	assert(group->column_count >= 1 && group->column_count <= TABLES_COLUMNS_PER_GROUP_MAX);
	if (!has_string(tables, group->name) || !has_string(tables, group->period_type) ||
	    !has_string(tables, group->period_unit))
		return TABLES_FULL;
	for (uint32_t i = 0; i < group->column_count; i++)
		if (!has_string(tables, columns[i].sample_type) ||
		    !has_string(tables, columns[i].sample_unit))
			return TABLES_FULL;
	hash = hash_mix(hash, hash_bytes(columns, group->column_count * sizeof(*columns)));
	id = idmap_find(&tables->group_map, hash, group_equal, tables, &key);
	if (id != IDMAP_NONE)
		return id;
	if (vmarray_room(&tables->columns) < group->column_count || !vmarray_room(&tables->groups))
		return TABLES_FULL;
	added.column_first = (uint32_t)tables->columns.count;
	memcpy(vmarray_add(&tables->columns, group->column_count), columns,
	       group->column_count * sizeof(*columns));
	id = append(&tables->groups, &added);
	idmap_add(&tables->group_map, hash, id);
	return id;
}

static bool series_equal(const void *context, uint32_t id, const void *key)
{
	const struct tables *tables = context;

	return !memcmp(AT(tables->series, struct series, id), key, sizeof(struct series));
}

uint32_t tables_series(struct tables *tables, uint32_t label_set, uint32_t group)
{
	struct series series = { label_set, group };
	uint64_t hash = hash_bytes(&series, sizeof(series));
	uint32_t id;

	if (label_set == TABLES_FULL || group == TABLES_FULL)
		return TABLES_FULL;
	assert(label_set < tables->label_sets.count && group < tables->groups.count);
	id = idmap_find(&tables->series_map, hash, series_equal, tables, &series);
	if (id != IDMAP_NONE)
		return id;
	id = append(&tables->series, &series);
	if (id != TABLES_FULL)
		idmap_add(&tables->series_map, hash, id);
	return id;
}

static uint32_t columns_of(const struct tables *tables, uint32_t series)
{
	uint32_t group = AT(tables->series, struct series, series)->group;

	return AT(tables->groups, struct group, group)->column_count;
}

uint32_t tables_report_begin(struct tables *tables, uint32_t series, int64_t start_ns,
			     int64_t duration_ns, uint64_t batch_id)
{
	struct report report = {
		.series = series,
		.row_first = tables->rows.count,
		.value_first = tables->values.count,
		.total_first = tables->totals.count,
		.moment_first = tables->moments.count,
		.start_ns = start_ns,
		.duration_ns = duration_ns,
		.batch_id = batch_id,
	};

	if (series == TABLES_FULL || !vmarray_room(&tables->reports))
		return TABLES_FULL;
	if (!vmarray_add(&tables->totals, columns_of(tables, series)))
		return TABLES_FULL;
	return append(&tables->reports, &report);
}

static struct report *newest_report(const struct tables *tables)
{
	assert(tables->reports.count > 0);
	return AT(tables->reports, struct report, tables->reports.count - 1);
}

bool tables_rows(struct tables *tables, const struct row *rows, uint32_t count,
		 const int64_t *values)
{
	struct report *report = newest_report(tables);
	uint32_t columns = columns_of(tables, report->series);
	int64_t *totals = AT(tables->totals, int64_t, report->total_first);
	size_t values_count = (size_t)count * columns;

	if (!count)
		return true;
	for (uint32_t i = 0; i < count; i++)
		if (rows[i].stack == TABLES_FULL || rows[i].label_set == TABLES_FULL)
			return false;
	if (vmarray_room(&tables->rows) < count || vmarray_room(&tables->values) < values_count)
		return false;
	for (uint32_t i = 0; i < count; i++)
		assert(rows[i].stack < tables->nodes.count &&
		       rows[i].label_set < tables->label_sets.count);
	memcpy(vmarray_add(&tables->rows, count), rows, count * sizeof(*rows));
	memcpy(vmarray_add(&tables->values, values_count), values, values_count * sizeof(*values));
	report->row_count += count;
	for (uint32_t row = 0; row < count; row++, values += columns)
		for (uint32_t i = 0; i < columns; i++)
			if (__builtin_add_overflow(totals[i], values[i], &totals[i]))
				totals[i] = values[i] > 0 ? INT64_MAX : INT64_MIN;
	return true;
}

bool tables_row(struct tables *tables, uint32_t stack, uint32_t label_set, const int64_t *values)
{
	return tables_rows(tables, &(struct row){ stack, label_set }, 1, values);
}

/* Makes the newest elements unused again; they are zeroed for the next taker. */
static void take_back(struct vmarray *array, size_t count)
{
	size_t first = array->count - count;

	memset((char *)array->data + first * array->element_bytes, 0, count * array->element_bytes);
	array->count = first;
}

void tables_report_cancel(struct tables *tables)
{
	struct report report = *newest_report(tables);
	uint32_t columns = columns_of(tables, report.series);

	take_back(&tables->moments, report.moment_count);
	take_back(&tables->rows, report.row_count);
	take_back(&tables->values, (size_t)report.row_count * columns);
	take_back(&tables->totals, columns);
	take_back(&tables->reports, 1);
}

static uint32_t *id_map(uint32_t count)
{
	uint32_t *map = mem_realloc(NULL, count ? count : 1, sizeof(*map));

	memset(map, 0xff, (count ? count : 1) * sizeof(*map));
	return map;
}

void tables_copy_begin(struct tables_copy *copy, struct tables *into,
		       const struct tables_view *from)
{
	*copy = (struct tables_copy){ .into = into, .from = *from };
	copy->strings = id_map(from->strings_count);
	copy->frames = id_map(from->frames_count);
	copy->nodes = id_map(from->nodes_count);
	copy->label_sets = id_map(from->label_sets_count);
	copy->groups = id_map(from->groups_count);
	copy->series = id_map(from->series_count);
	copy->nodes[0] = 0;
}

void tables_copy_end(struct tables_copy *copy)
{
	free(copy->strings);
	free(copy->frames);
	free(copy->nodes);
	free(copy->label_sets);
	free(copy->groups);
	free(copy->series);
	free(copy->links);
	free(copy->trail);
	*copy = (struct tables_copy){ 0 };
}

uint32_t tables_copy_string(struct tables_copy *copy, uint32_t id)
{
	if (copy->strings[id] == TABLES_FULL)
		copy->strings[id] = tables_string(copy->into, tables_text(&copy->from, id));
	return copy->strings[id];
}

uint32_t tables_copy_label_set(struct tables_copy *copy, uint32_t id)
{
	const struct label_set *set = &copy->from.label_sets[id];
	struct label labels[TABLES_LABELS_PER_SET_MAX];

	if (copy->label_sets[id] != TABLES_FULL)
		return copy->label_sets[id];
	assert(set->label_count <= TABLES_LABELS_PER_SET_MAX);
	for (uint32_t i = 0; i < set->label_count; i++) {
		labels[i] = copy->from.labels[set->label_first + i];
		labels[i].name = tables_copy_string(copy, labels[i].name);
		labels[i].value = tables_copy_string(copy, labels[i].value);
		labels[i].unit = tables_copy_string(copy, labels[i].unit);
	}
	copy->label_sets[id] = tables_label_set(copy->into, labels, set->label_count);
	return copy->label_sets[id];
}

static uint32_t copy_group(struct tables_copy *copy, uint32_t id)
{
	const struct group *from = &copy->from.groups[id];
	struct column columns[TABLES_COLUMNS_PER_GROUP_MAX];
	struct group group = *from;

	if (copy->groups[id] != TABLES_FULL)
		return copy->groups[id];
	assert(from->column_count <= TABLES_COLUMNS_PER_GROUP_MAX);
	group.name = tables_copy_string(copy, from->name);
	group.period_type = tables_copy_string(copy, from->period_type);
	group.period_unit = tables_copy_string(copy, from->period_unit);
	for (uint32_t i = 0; i < from->column_count; i++) {
		columns[i] = copy->from.columns[from->column_first + i];
		columns[i].sample_type = tables_copy_string(copy, columns[i].sample_type);
		columns[i].sample_unit = tables_copy_string(copy, columns[i].sample_unit);
	}
	copy->groups[id] = tables_group(copy->into, &group, columns);
	return copy->groups[id];
}

uint32_t tables_copy_series(struct tables_copy *copy, uint32_t id)
{
	const struct series *series = &copy->from.series[id];

	if (copy->series[id] == TABLES_FULL)
		copy->series[id] =
			tables_series(copy->into, tables_copy_label_set(copy, series->label_set),
				      copy_group(copy, series->group));
	return copy->series[id];
}

static uint32_t copy_frame(struct tables_copy *copy, uint32_t id)
{
	struct frame frame;

	if (copy->frames[id] != TABLES_FULL)
		return copy->frames[id];
	frame = copy->from.frames[id];
	frame.mapping_file = tables_copy_string(copy, frame.mapping_file);
	frame.build_id = tables_copy_string(copy, frame.build_id);
	frame.function = tables_copy_string(copy, frame.function);
	frame.system_name = tables_copy_string(copy, frame.system_name);
	frame.file = tables_copy_string(copy, frame.file);
	copy->frames[id] = tables_frame(copy->into, &frame);
	return copy->frames[id];
}

uint32_t tables_copy_node(struct tables_copy *copy, uint32_t id)
{
	size_t trail = 0;
	uint32_t made;

	for (; copy->nodes[id] == TABLES_FULL; id = copy->from.nodes[id].parent) {
		assert(copy->from.nodes[id].parent < id);
		mem_grow(copy->trail, trail, copy->trail_capacity);
		copy->trail[trail++] = id;
	}
	made = copy->nodes[id];
	while (trail) {
		id = copy->trail[--trail];
		made = tables_node(copy->into, made, copy_frame(copy, copy->from.nodes[id].frame));
		copy->nodes[id] = made;
		if (made == TABLES_FULL)
			return TABLES_FULL;
	}
	return made;
}

bool tables_copy_report(struct tables_copy *copy, uint32_t id)
{
	const struct report *report = &copy->from.reports[id];
	uint32_t columns = tables_series_columns(&copy->from, report->series);

	if (tables_report_begin(copy->into, tables_copy_series(copy, report->series),
				report->start_ns, report->duration_ns,
				report->batch_id) == TABLES_FULL)
		return false;
	for (uint32_t i = 0; i < report->row_count; i++) {
		const struct row *row = &copy->from.rows[report->row_first + i];
		const int64_t *values =
			&copy->from.values[report->value_first + (uint64_t)i * columns];

		if (!tables_row(copy->into, tables_copy_node(copy, row->stack),
				tables_copy_label_set(copy, row->label_set), values)) {
			tables_report_cancel(copy->into);
			return false;
		}
	}
	if (tables_copy_moments(copy, report))
		return true;
	tables_report_cancel(copy->into);
	return false;
}

struct slice tables_label_value(const struct tables_view *view, uint32_t label_set,
				struct slice name)
{
	const struct label_set *set = &view->label_sets[label_set];

	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];

		if (slice_equal(tables_text(view, label->name), name))
			return tables_text(view, label->value);
	}
	return (struct slice){ "", 0 };
}

/* OpenTelemetry's values of profile.frame.type, and our own for a runtime's native code. */
static const char *const kind_names[FRAME_KINDS] = {
	[FRAME_UNKNOWN] = "unknown",
	[FRAME_NATIVE] = "native",
	[FRAME_KERNEL] = "kernel",
	[FRAME_GO] = "go",
	[FRAME_RUST] = "rust",
	[FRAME_JVM] = "jvm",
	[FRAME_PYTHON] = "cpython",
	[FRAME_RUBY] = "ruby",
	[FRAME_NODE] = "v8js",
	[FRAME_PHP] = "php",
	[FRAME_PERL] = "perl",
	[FRAME_DOTNET] = "dotnet",
	[FRAME_BEAM] = "beam",
	[FRAME_LUA] = "luajit",
	[FRAME_MARKER] = "marker",
	[FRAME_PYTHON_RUNTIME] = "cpython-runtime",
	[FRAME_V8_RUNTIME] = "v8-runtime",
	[FRAME_RUBY_RUNTIME] = "ruby-runtime",
	[FRAME_DOTNET_RUNTIME] = "dotnet-runtime",
	[FRAME_PHP_RUNTIME] = "php-runtime",
	[FRAME_BEAM_RUNTIME] = "beam-runtime",
	[FRAME_PERL_RUNTIME] = "perl-runtime",
	[FRAME_LUA_RUNTIME] = "luajit-runtime",
	[FRAME_WASM] = "wasm",
};

const char *frame_kind_name(enum frame_kind kind)
{
	return kind < FRAME_KINDS ? kind_names[kind] : kind_names[FRAME_UNKNOWN];
}

enum frame_kind frame_kind_of(struct slice name)
{
	for (int kind = 0; kind < FRAME_KINDS; kind++)
		if (slice_is(name, kind_names[kind]))
			return (enum frame_kind)kind;
	return FRAME_UNKNOWN;
}
