/* SPDX-License-Identifier: Apache-2.0 */
#include "coded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"

#define BLOCK_REPORTS 3u
#define SEGMENTS_PER_PARTITION 3u

/* One level of a partition. What tables cannot say of a report stands beside it. */
struct level {
	struct tables_view view; /* copies: tables reserve more addresses than sanitizers have */
	struct extra {
		uint32_t reports_count;
		int64_t end_ns;
	} * extras;
	size_t extras_count, extras_capacity;
	struct segment_zone *zones;
	uint32_t blocks_count;
	uint32_t *node_of_slot, *slot_of_node;
	bool labels;
	struct partition *partition;
};

struct partition {
	struct tables_view from; /* of the world */
	uint32_t group;
	struct slice key;
	struct level levels[3]; /* raw, hours by series, hours of all */
	uint64_t id, key_hash;
	bool is_delta, broken;
};

struct coded {
	struct partition *partitions;
	size_t count, capacity;
	struct segment *segments;
};

static int load_stacks(struct segment *segment, struct err *err)
{
	const struct level *level = segment->owner;

	if (level->partition->broken)
		return err_set(err, ERR_CORRUPT, "stacks: broken for the test");
	/* Before this, frames and nodes are not there. */
	segment->view = level->view;
	segment->node_of_slot = level->node_of_slot;
	return 0;
}

static void hide_stacks(struct segment *segment)
{
	segment->view.frames = NULL;
	segment->view.nodes = NULL;
	segment->view.frames_count = segment->view.nodes_count = 0;
	segment->node_of_slot = NULL;
}

static bool all_ones(const struct tables_view *view, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		uint64_t values = (uint64_t)view->reports[i].row_count *
				  tables_series_columns(view, view->reports[i].series);

		for (uint64_t v = 0; v < values; v++)
			if (view->values[view->reports[i].value_first + v] != 1)
				return false;
	}
	return true;
}

/* Rows and values of the block behind one another; values column by column. */
static void copy_rows(const struct level *level, uint32_t first, struct segment_report *reports,
		      uint32_t count, uint32_t *slots, uint32_t *label_sets, int64_t *values)
{
	uint64_t row = 0, rows = 0;

	for (uint32_t i = 0; i < count; i++)
		rows += reports[i].row_count;
	for (uint32_t i = 0; i < count; i++) {
		const struct report *report = &level->view.reports[first + i];
		uint32_t columns = tables_series_columns(&level->view, report->series);

		reports[i].row_first = reports[i].value_first = row;
		for (uint32_t r = 0; r < report->row_count; r++, row++) {
			const struct row *from = &level->view.rows[report->row_first + r];

			slots[row] = level->slot_of_node[from->stack];
			label_sets[row] = from->label_set;
			for (uint32_t c = 0; c < columns; c++)
				values[c * rows + row] =
					level->view.values[report->value_first + r * columns + c];
		}
	}
}

static int read_block(const struct segment *segment, uint32_t block, enum segment_want want,
		      struct segment_buffer *buffer, struct segment_block *ret, struct err *err)
{
	const struct level *level = segment->owner;
	uint32_t first = block * BLOCK_REPORTS;
	uint32_t count = segment->zones[block].reports;
	uint64_t rows = segment->zones[block].rows;
	struct segment_report *reports;
	int64_t *totals, *values;
	uint32_t *slots;

	if (level->partition->broken && want == SEGMENT_ROWS)
		return err_set(err, ERR_CORRUPT, "rows: broken for the test");
	reports = segment_buffer_room(buffer,
				      count * (sizeof(*reports) + 2 * sizeof(*totals)) +
					      rows * (2 * sizeof(*slots) + 2 * sizeof(*values)));
	totals = (int64_t *)(reports + count);
	values = totals + 2 * (size_t)count;
	slots = (uint32_t *)(values + 2 * rows);
	for (uint32_t i = 0; i < count; i++) {
		const struct report *report = &level->view.reports[first + i];

		reports[i] = (struct segment_report){
			.series = report->series,
			.row_count = report->row_count,
			.total_first = 2 * i,
			.reports_count = level->extras[first + i].reports_count,
			.start_ns = report->start_ns,
			.duration_ns = report->duration_ns,
			.end_ns = level->extras[first + i].end_ns,
		};
		for (uint32_t c = 0; c < tables_series_columns(&level->view, report->series); c++)
			totals[2 * i + c] = level->view.totals[report->total_first + c];
	}
	*ret = (struct segment_block){ .reports = reports,
				       .reports_count = count,
				       .totals = totals };
	if (want == SEGMENT_HEADERS)
		return 0;
	copy_rows(level, first, reports, count, slots, slots + rows, values);
	ret->slots = slots;
	ret->label_sets = level->labels ? slots + rows : NULL;
	ret->row_stride = 1;
	ret->values = all_ones(&level->view, first, count) ? NULL : values;
	ret->value_stride = 1;
	ret->column_stride = rows;
	return 0;
}

static const struct segment_ops ops = { .load_stacks = load_stacks,
					.drop_stacks = hide_stacks,
					.read = read_block };

static struct slice key_of(const struct tables_view *view, uint32_t series, const char *key)
{
	return tables_label_value(view, view->series[series].label_set, slice_of(key));
}

static struct partition *partition_of(struct coded *coded, const struct tables_view *view,
				      uint32_t part, uint32_t series, const char *key)
{
	uint32_t group = view->series[series].group;
	struct slice value = key_of(view, series, key);

	for (size_t i = 0; i < coded->count; i++) {
		struct partition *partition = &coded->partitions[i];

		if (partition->from.strings == view->strings && partition->group == group &&
		    slice_equal(partition->key, value))
			return partition;
	}
	mem_grow(coded->partitions, coded->count, coded->capacity);
	coded->partitions[coded->count] = (struct partition){
		.from = *view,
		.group = group,
		.key = value,
		.id = (uint64_t)part * 1000000 + coded->count + 1,
		.key_hash = group * 10 + (value.len ? (uint64_t)value.data[0] : 0),
		.is_delta = view->columns[view->groups[group].column_first].kind == COLUMN_DELTA &&
			    view->groups[group].column_count == 1,
	};
	return &coded->partitions[coded->count++];
}

static void note_extra(struct level *level, uint32_t reports_count, int64_t end_ns)
{
	mem_grow(level->extras, level->extras_count, level->extras_capacity);
	level->extras[level->extras_count++] = (struct extra){ reports_count, end_ns };
}

static int report_order(const void *left, const void *right, void *context)
{
	const struct report *reports = context;
	const struct report *a = &reports[*(const uint32_t *)left];
	const struct report *b = &reports[*(const uint32_t *)right];

	if (a->series != b->series)
		return a->series < b->series ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int64_t grain_of(int64_t at_ns)
{
	return at_ns / CODED_GRAIN_NS - (at_ns % CODED_GRAIN_NS < 0);
}

/* Adds reports [first, end) of the order as one without sample labels. */
static void add_rollup(struct level *level, struct tables_copy *copy, const uint32_t *order,
		       uint32_t first, uint32_t end, bool all)
{
	const struct tables_view *from = &copy->from;
	const struct report *head = &from->reports[order[first]];
	int64_t start_ns = head->start_ns, end_ns = INT64_MIN, duration_ns = 0;
	uint32_t series = tables_copy_series(copy, head->series);

	for (uint32_t i = first; i < end; i++) {
		const struct report *report = &from->reports[order[i]];

		start_ns = report->start_ns < start_ns ? report->start_ns : start_ns;
		if (report->start_ns + report->duration_ns > end_ns)
			end_ns = report->start_ns + report->duration_ns;
		duration_ns += report->duration_ns;
	}
	tables_report_begin(copy->into, all ? 0 : series, start_ns, duration_ns, 0);
	for (uint32_t i = first; i < end; i++) {
		const struct report *report = &from->reports[order[i]];
		uint32_t columns = tables_series_columns(from, report->series);

		for (uint32_t r = 0; r < report->row_count; r++)
			tables_row(copy->into,
				   tables_copy_node(copy, from->rows[report->row_first + r].stack),
				   0, &from->values[report->value_first + (uint64_t)r * columns]);
	}
	note_extra(level, end - first, end_ns);
}

/* Of the whole partition: all reports of an hour, whatever their series. */
static void add_hours_of_all(struct level *level, struct tables_copy *copy, uint32_t *order,
			     uint32_t count)
{
	const struct report *reports = copy->from.reports;

	for (int64_t hour = -2; hour < 20; hour++) {
		uint32_t taken = 0;
		uint32_t *of_hour = mem_new_array(uint32_t, count + 1);

		for (uint32_t i = 0; i < count; i++)
			if (grain_of(reports[order[i]].start_ns) == hour)
				of_hour[taken++] = order[i];
		if (taken)
			add_rollup(level, copy, of_hour, 0, taken, true);
		free(of_hour);
	}
}

static void *copy_of(const void *from, size_t count, size_t size)
{
	void *copy = mem_new_array(char, count *size + 1);

	return count ? memcpy(copy, from, count * size) : copy;
}

#define FREEZE(member) (v.member = copy_of(v.member, v.member##_count, sizeof(*v.member)))

static struct tables_view frozen(const struct tables *tables)
{
	struct tables_view v = tables_view_of(tables);

	FREEZE(string_bytes);
	FREEZE(strings);
	FREEZE(labels);
	FREEZE(label_sets);
	FREEZE(columns);
	FREEZE(groups);
	FREEZE(series);
	FREEZE(frames);
	FREEZE(nodes);
	FREEZE(reports);
	FREEZE(rows);
	FREEZE(values);
	FREEZE(totals);
	return v;
}

static void thaw(const struct tables_view *v)
{
	const void *const arrays[] = { v->string_bytes, v->strings, v->labels, v->label_sets,
				       v->columns,	v->groups,  v->series, v->frames,
				       v->nodes,	v->reports, v->rows,   v->values,
				       v->totals };

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		free((void *)arrays[i]);
}

/* The nodes below one that stacks of the reports need, in pre-order. */
static void copy_below(struct tables_copy *copy, const bool *needed, uint32_t parent)
{
	const struct tables_view *from = &copy->from;

	for (uint32_t i = parent + 1; i < from->nodes_count; i++) {
		if (!needed[i] || from->nodes[i].parent != parent)
			continue;
		tables_copy_node(copy, i);
		copy_below(copy, needed, i);
	}
}

/* As parts do: all levels share their nodes, which are in pre-order. */
static void copy_nodes(struct tables_copy *copy, const uint32_t *order, uint32_t count)
{
	const struct tables_view *from = &copy->from;
	bool *needed = mem_new_array(bool, from->nodes_count);

	for (uint32_t i = 0; i < count; i++) {
		const struct report *report = &from->reports[order[i]];

		for (uint32_t r = 0; r < report->row_count; r++)
			for (uint32_t at = from->rows[report->row_first + r].stack; at;
			     at = from->nodes[at].parent)
				needed[at] = true;
	}
	copy_below(copy, needed, 0);
	free(needed);
}

static void fill_level(struct partition *partition, int number, uint32_t *order, uint32_t count)
{
	struct level *level = &partition->levels[number];
	const struct report *reports = partition->from.reports;
	struct tables_copy copy;
	struct tables tables;

	tables_init(&tables);
	tables_copy_begin(&copy, &tables, &partition->from);
	copy_nodes(&copy, order, count);
	for (uint32_t i = 0, end; number < 2 && i < count; i = end) {
		end = i + 1;
		if (number == 0) {
			assert_true(tables_copy_report(&copy, order[i]));
			note_extra(level, 1,
				   reports[order[i]].start_ns + reports[order[i]].duration_ns);
			continue;
		}
		while (end < count && reports[order[end]].series == reports[order[i]].series &&
		       grain_of(reports[order[end]].start_ns) ==
			       grain_of(reports[order[i]].start_ns))
			end++;
		add_rollup(level, &copy, order, i, end, false);
	}
	if (number == 2)
		add_hours_of_all(level, &copy, order, count);
	tables_copy_end(&copy);
	level->partition = partition;
	level->view = frozen(&tables);
	tables_free(&tables);
}

static void index_level(struct level *level)
{
	const struct tables_view *view = &level->view;
	uint32_t nodes = view->nodes_count;

	level->blocks_count = (view->reports_count + BLOCK_REPORTS - 1) / BLOCK_REPORTS;
	level->zones = mem_new_array(struct segment_zone, level->blocks_count + 1);
	for (uint32_t i = 0; i < view->reports_count; i++) {
		struct segment_zone *zone = &level->zones[i / BLOCK_REPORTS];
		const struct report *report = &view->reports[i];

		if (!zone->reports || report->series < zone->series_min)
			zone->series_min = report->series;
		if (!zone->reports || report->series > zone->series_max)
			zone->series_max = report->series;
		if (!zone->reports || report->start_ns < zone->start_min_ns)
			zone->start_min_ns = report->start_ns;
		if (!zone->reports || report->start_ns > zone->start_max_ns)
			zone->start_max_ns = report->start_ns;
		zone->reports++;
		zone->rows += report->row_count;
		zone->bytes += 10;
	}
	for (uint64_t i = 0; i < view->rows_count; i++)
		level->labels |= view->rows[i].label_set != 0;
	level->node_of_slot = mem_new_array(uint32_t, nodes);
	level->slot_of_node = mem_new_array(uint32_t, nodes);
	for (uint32_t i = 0; i < nodes; i++) {
		level->node_of_slot[i] = nodes - 1 - i;
		level->slot_of_node[nodes - 1 - i] = i;
	}
}

static void fill(struct partition *partition, const char *key)
{
	const struct tables_view *view = &partition->from;
	uint32_t *order = mem_new_array(uint32_t, view->reports_count + 1);
	uint32_t count = 0;

	for (uint32_t i = 0; i < view->reports_count; i++) {
		uint32_t series = view->reports[i].series;

		if (view->series[series].group == partition->group &&
		    slice_equal(key_of(view, series, key), partition->key))
			order[count++] = i;
	}
	if (count)
		qsort_r(order, count, sizeof(*order), report_order, (void *)view->reports);
	for (int i = 0; i < 3; i++) {
		fill_level(partition, i, order, count);
		index_level(&partition->levels[i]);
	}
	free(order);
}

struct coded *coded_new(const struct world *world, const char *key)
{
	struct coded *coded = mem_new(struct coded);

	for (size_t v = 0; v < world->views_count; v++) {
		struct tables_view view = tables_view_of(&world->tables[v]);

		for (uint32_t i = 0; i < view.reports_count; i++)
			partition_of(coded, &view, (uint32_t)v, view.reports[i].series, key);
	}
	for (size_t i = 0; i < coded->count; i++)
		fill(&coded->partitions[i], key);
	coded->segments = mem_new_array(struct segment, coded->count * SEGMENTS_PER_PARTITION + 1);
	return coded;
}

void coded_free(struct coded *coded)
{
	for (size_t i = 0; i < coded->count; i++) {
		for (int l = 0; l < 3; l++) {
			struct level *level = &coded->partitions[i].levels[l];

			thaw(&level->view);
			free(level->extras);
			free(level->zones);
			free(level->node_of_slot);
			free(level->slot_of_node);
		}
	}
	free(coded->partitions);
	free(coded->segments);
	free(coded);
}

static void add_segment(struct coded *coded, size_t *count, struct partition *partition, int number,
			int64_t from_ns, int64_t to_ns)
{
	static const enum segment_level names[] = { SEGMENT_RAW, SEGMENT_HOUR_SERIES,
						    SEGMENT_HOUR_ALL };
	struct level *level = &partition->levels[number];
	struct segment *segment = &coded->segments[*count];

	if (from_ns >= to_ns)
		return;
	++*count;
	*segment = (struct segment){
		.view = level->view,
		.ops = &ops,
		.owner = level,
		.level = names[number],
		.from_ns = from_ns,
		.to_ns = to_ns,
		.zones = level->zones,
		.blocks_count = level->blocks_count,
		.slots_count = level->view.nodes_count,
		.has_sample_labels = level->labels,
		.id = partition->id,
		.partition_key_hash = partition->key_hash,
	};
	/* Only what there is before stacks are loaded. */
	hide_stacks(segment);
	segment->view.reports = NULL;
	segment->view.rows = NULL;
	segment->view.reports_count = 0;
}

struct query_source coded_source(struct coded *coded, const struct coded_wanted *wanted)
{
	int64_t inner_from_ns = (grain_of(wanted->from_ns - 1) + 1) * CODED_GRAIN_NS;
	int64_t inner_to_ns = grain_of(wanted->to_ns) * CODED_GRAIN_NS;
	size_t count = 0;

	for (size_t i = 0; i < coded->count; i++) {
		struct partition *partition = &coded->partitions[i];

		if (!wanted->rolled_up || inner_from_ns >= inner_to_ns) {
			add_segment(coded, &count, partition, 0, wanted->from_ns, wanted->to_ns);
			continue;
		}
		add_segment(coded, &count, partition, wanted->all && partition->is_delta ? 2 : 1,
			    inner_from_ns, inner_to_ns);
		add_segment(coded, &count, partition, 0, wanted->from_ns, inner_from_ns);
		add_segment(coded, &count, partition, 0, inner_to_ns, wanted->to_ns);
	}
	return (struct query_source){ .segments = coded->segments, .segments_count = count };
}

size_t coded_count(const struct coded *coded)
{
	return coded->count;
}

struct coded_broken coded_break(struct coded *coded, size_t number)
{
	struct partition *partition = &coded->partitions[number];

	partition->broken = true;
	return (struct coded_broken){ (uint32_t)(partition->id / 1000000), partition->is_delta,
				      partition->key };
}
