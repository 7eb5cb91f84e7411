/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/segment.h"

#define COMMS 3
#define REGIONS 3
#define GROUPS 3
#define SECOND_NS CLOCK_NS_PER_S

static const struct group_shape {
	const char *name, *period_type;
	uint32_t columns;
	const char *types[HISTORY_COLUMNS_MAX];
	enum column_kind kind;
} groups[GROUPS] = {
	{ "on_cpu", "cpu", 1, { "samples" }, COLUMN_DELTA },
	{ "alloc", "space", 2, { "objects", "bytes" }, COLUMN_DELTA },
	{ "heap", "space", 2, { "objects", "bytes" }, COLUMN_GAUGE },
};

static const struct delete_shape {
	const char *selector;
	int group, comm, comm_not, region; /* -1: any */
} deletes[HISTORY_DELETES] = {
	{ "{comm=\"c1\"}", -1, 1, -1, -1 },
	{ "on_cpu:samples:count:cpu:n:delta{region=\"r0\"}", 0, -1, -1, 0 },
	{ "alloc:bytes:count:space:n:delta", 1, -1, -1, -1 },
	{ "{comm!~\"c0|x.*\"}", -1, -1, 0, -1 },
	{ "{comm=\"c2\",region=\"r1\",nothing=\"\"}", -1, 2, -1, 1 },
};

void history_init(struct history *history, uint64_t seed)
{
	*history = (struct history){ .random = seed * 0x9e3779b97f4a7c15u | 1,
				     .depth_max = 4,
				     .forgotten_before_ns = INT64_MIN };
}

void history_free(struct history *history)
{
	free(history->reports);
}

uint32_t history_dice(struct history *history, uint32_t sides)
{
	history->random ^= history->random << 13;
	history->random ^= history->random >> 7;
	history->random ^= history->random << 17;
	return (uint32_t)((history->random >> 20) % sides);
}

/* Reports. */

static void make_row(struct history *history, const struct history_report *report,
		     struct history_row *row)
{
	uint32_t depth = 1 + history_dice(history, history->depth_max);
	size_t len = 0;

	*row = (struct history_row){ 0 };
	for (uint32_t i = 0; i < depth; i++)
		len += (size_t)snprintf(row->stack + len, sizeof(row->stack) - len, "%sf%u",
					i ? ";" : "", history_dice(history, 4));
	if (report->comm == 2 && history_dice(history, 3) == 0)
		snprintf(row->label, sizeof(row->label), "t%u", history_dice(history, 3));
	for (uint32_t c = 0; c < groups[report->group].columns; c++)
		row->values[c] = history_dice(history, 4) ? history_dice(history, 1000) : 1;
}

static void make_report(struct history *history, int64_t from_ns, int64_t to_ns,
			struct history_report *ret)
{
	uint64_t span = (uint64_t)(to_ns - from_ns) / (uint64_t)SECOND_NS;

	*ret = (struct history_report){
		.group = history_dice(history, GROUPS),
		.comm = history_dice(history, COMMS),
		.region = history_dice(history, REGIONS),
		.start_ns = from_ns + (int64_t)history_dice(history, (uint32_t)span) * SECOND_NS,
		.duration_ns = (1 + history_dice(history, 20)) * SECOND_NS,
		.rows_count = history_dice(history, HISTORY_ROWS_MAX + 1),
		.fate = HISTORY_UNKNOWN,
	};
	for (uint32_t i = 0; i < ret->rows_count; i++)
		make_row(history, ret, &ret->rows[i]);
}

static uint32_t string(struct tables *tables, const char *text)
{
	return tables_string(tables, slice_of(text));
}

static uint32_t series_of(struct tables *tables, const struct history_report *report)
{
	const struct group_shape *shape = &groups[report->group];
	struct column columns[HISTORY_COLUMNS_MAX];
	struct group group = { .column_count = shape->columns, .period = 10 };
	struct label labels[2] = { 0 };
	char text[16];

	group.name = string(tables, shape->name);
	group.period_type = string(tables, shape->period_type);
	group.period_unit = string(tables, "n");
	for (uint32_t c = 0; c < shape->columns; c++)
		columns[c] = (struct column){ string(tables, shape->types[c]),
					      string(tables, "count"), shape->kind };
	snprintf(text, sizeof(text), "c%u", report->comm);
	labels[0].name = string(tables, "comm");
	labels[0].value = string(tables, text);
	snprintf(text, sizeof(text), "r%u", report->region);
	labels[1].name = string(tables, "region");
	labels[1].value = string(tables, text);
	return tables_series(tables, tables_label_set(tables, labels, 2),
			     tables_group(tables, &group, columns));
}

static uint32_t stack_of(struct tables *tables, const char *text)
{
	struct slice rest = slice_of(text);
	uint32_t node = 0;

	while (rest.len) {
		struct frame frame = { .kind = FRAME_NATIVE };

		frame.function = tables_string(tables, slice_cut(rest, ';', &rest));
		node = tables_node(tables, node, tables_frame(tables, &frame));
	}
	return node;
}

static void add_report(struct tables *tables, const struct history_report *report,
		       uint64_t batch_id)
{
	tables_report_begin(tables, series_of(tables, report), report->start_ns,
			    report->duration_ns, batch_id);
	for (uint32_t i = 0; i < report->rows_count; i++) {
		const struct history_row *row = &report->rows[i];
		uint32_t set = 0;

		if (row->label[0]) {
			struct label label = { .name = string(tables, "thread"),
					       .value = string(tables, row->label) };

			set = tables_label_set(tables, &label, 1);
		}
		tables_row(tables, stack_of(tables, row->stack), set, row->values);
	}
}

int history_append(struct history *history, struct store *store, uint32_t count, int64_t from_ns,
		   int64_t to_ns, struct err *err)
{
	struct append_result result;
	struct tables_view view;
	struct tables tables;
	size_t first = history->count;
	int rc;

	tables_init(&tables);
	for (uint32_t i = 0; i < count; i++) {
		mem_grow(history->reports, history->count, history->capacity);
		make_report(history, from_ns, to_ns, &history->reports[history->count]);
		add_report(&tables, &history->reports[history->count], history->count + 1);
		history->count++;
	}
	view = tables_view_of(&tables);
	rc = store_append(store, &view, &result, err);
	if (!rc)
		assert_int_equal(result.reports_stored, count);
	for (size_t i = first; !rc && i < history->count; i++)
		history->reports[i].fate = HISTORY_STORED;
	tables_free(&tables);
	return rc;
}

static bool is_meant(const struct delete_shape *shape, const struct history_report *report)
{
	return (shape->group < 0 || shape->group == (int)report->group) &&
	       (shape->comm < 0 || shape->comm == (int)report->comm) &&
	       (shape->comm_not < 0 || shape->comm_not != (int)report->comm) &&
	       (shape->region < 0 || shape->region == (int)report->region);
}

int history_delete(struct history *history, struct store *store, uint32_t kind, int64_t from_ns,
		   int64_t to_ns, struct err *err)
{
	const struct delete_shape *shape = &deletes[kind];
	struct store_delete order = { .selector = slice_of(shape->selector),
				      .from_ns = from_ns,
				      .to_ns = to_ns,
				      .by = "test" };
	uint64_t number;
	int rc = store_delete(store, &order, &number, err);

	for (size_t i = 0; i < history->count; i++) {
		struct history_report *report = &history->reports[i];

		if (report->start_ns < from_ns || report->start_ns >= to_ns ||
		    !is_meant(shape, report))
			continue;
		if (!rc)
			report->fate = HISTORY_DELETED;
		else if (report->fate == HISTORY_STORED || report->fate == HISTORY_UNKNOWN)
			report->fate = HISTORY_DOOMED;
	}
	return rc;
}

/* Lines. */

struct lines {
	char **items;
	size_t count, capacity;
};

static void add_line(struct lines *lines, struct strbuf *text)
{
	mem_grow(lines->items, lines->count, lines->capacity);
	lines->items[lines->count++] = mem_strndup(strbuf_text(text), text->len);
	strbuf_clear(text);
}

static void free_lines(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->items[i]);
	free(lines->items);
}

static int line_order(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static void sort_lines(struct lines *lines)
{
	if (lines->count)
		qsort(lines->items, lines->count, sizeof(*lines->items), line_order);
}

static void put_row(struct strbuf *out, const char *stack, const char *label, const int64_t *values,
		    uint32_t columns)
{
	strbuf_addf(out, " %s[%s]", stack, label);
	for (uint32_t c = 0; c < columns; c++)
		strbuf_addf(out, ",%lld", (long long)values[c]);
}

/* Rows in an order of their own: a store need not keep it. */
static void put_rows(struct strbuf *out, struct lines *rows)
{
	sort_lines(rows);
	for (size_t i = 0; i < rows->count; i++)
		strbuf_add_text(out, rows->items[i]);
	free_lines(rows);
}

static void put_own(struct strbuf *out, const struct history_report *report)
{
	struct strbuf text = { 0 };
	struct lines rows = { 0 };

	strbuf_addf(out, "%s c%u r%u %lld+%lld", groups[report->group].name, report->comm,
		    report->region, (long long)report->start_ns, (long long)report->duration_ns);
	for (uint32_t i = 0; i < report->rows_count; i++) {
		put_row(&text, report->rows[i].stack, report->rows[i].label, report->rows[i].values,
			groups[report->group].columns);
		add_line(&rows, &text);
	}
	put_rows(out, &rows);
	strbuf_free(&text);
}

/* What segments say. */

static void put_stack(struct strbuf *out, const struct tables_view *view, uint32_t node)
{
	if (!node)
		return;
	put_stack(out, view, view->nodes[node].parent);
	if (out->len)
		strbuf_add_byte(out, ';');
	strbuf_add_slice(out, tables_text(view, view->frames[view->nodes[node].frame].function));
}

static struct slice series_label(const struct tables_view *view, uint32_t series, const char *name)
{
	return tables_label_value(view, view->series[series].label_set, slice_of(name));
}

struct found {
	const struct segment *segment;
	const struct segment_block *block;
	const struct segment_report *report;
	struct slice group;
	uint32_t columns;
};

static int64_t value_of(const struct found *found, uint32_t row, uint32_t column)
{
	uint64_t stride = found->block->value_stride ? found->block->value_stride : found->columns;

	if (!found->block->values)
		return 1;
	return found->block->values[found->report->value_first + row * stride +
				    column * found->block->column_stride];
}

static uint64_t row_at(const struct found *found, uint32_t row)
{
	return (found->report->row_first + row) * found->block->row_stride;
}

static void put_found_rows(struct strbuf *out, const struct found *found)
{
	const struct tables_view *view = &found->segment->view;
	int64_t totals[HISTORY_COLUMNS_MAX] = { 0 };
	struct strbuf text = { 0 };
	struct lines rows = { 0 };

	for (uint32_t i = 0; i < found->report->row_count; i++) {
		struct strbuf stack = { 0 }, label = { 0 };
		int64_t values[HISTORY_COLUMNS_MAX];

		put_stack(&stack, view,
			  segment_node(found->segment, found->block->slots[row_at(found, i)]));
		if (found->block->label_sets)
			strbuf_add_slice(
				&label,
				tables_label_value(view, found->block->label_sets[row_at(found, i)],
						   SLICE_LITERAL("thread")));
		for (uint32_t c = 0; c < found->columns; c++) {
			values[c] = value_of(found, i, c);
			totals[c] += values[c];
		}
		put_row(&text, strbuf_text(&stack), strbuf_text(&label), values, found->columns);
		add_line(&rows, &text);
		strbuf_free(&stack);
		strbuf_free(&label);
	}
	for (uint32_t c = 0; c < found->columns; c++)
		assert_int_equal(found->block->totals[found->report->total_first + c], totals[c]);
	put_rows(out, &rows);
	strbuf_free(&text);
}

static void put_found(struct strbuf *out, const struct found *found)
{
	const struct tables_view *view = &found->segment->view;

	strbuf_addf(out, "%.*s %.*s %.*s %lld+%lld", SLICE_FMT(found->group),
		    SLICE_FMT(series_label(view, found->report->series, "comm")),
		    SLICE_FMT(series_label(view, found->report->series, "region")),
		    (long long)found->report->start_ns, (long long)found->report->duration_ns);
	put_found_rows(out, found);
}

typedef void visit_f(void *context, const struct found *found);

static void visit_block(const struct segment *segment, const struct segment_block *block,
			visit_f *visit, void *context)
{
	const struct tables_view *view = &segment->view;

	for (uint32_t i = 0; i < block->reports_count; i++) {
		const struct segment_report *report = &block->reports[i];
		const struct group *group;
		struct found found = { segment, block, report, { 0 }, 0 };

		if (!segment_answers_for(segment, report->start_ns))
			continue;
		group = &view->groups[view->series[report->series].group];
		found.group = tables_text(view, group->name);
		found.columns = group->column_count;
		visit(context, &found);
	}
}

static void damage_found(struct history *history, const char *what, const struct err *err)
{
	if (!history->disk_lies)
		fail_msg("%s: %s", what, err->message);
	assert_int_equal(err->code, ERR_CORRUPT);
	history->told++;
}

static void visit_all(struct history *history, struct store *store, const struct store_query *query,
		      visit_f *visit, void *context)
{
	struct segment_buffer buffer = { 0 };
	struct store_snapshot snapshot;
	struct err err = { 0 };

	if (store_snapshot(store, query, &snapshot, &err))
		fail_msg("snapshot: %s", err.message);
	if (!history->disk_lies)
		assert_int_equal(snapshot.parts_unreadable, 0);
	history->told += snapshot.parts_unreadable;
	for (size_t i = 0; i < snapshot.count; i++) {
		struct segment *segment = &snapshot.segments[i];

		if (segment->level == SEGMENT_RAW)
			history->raw_seen++;
		else
			history->rollups_seen++;
		if (segment_load_stacks(segment, &err)) {
			damage_found(history, "stacks", &err);
			continue;
		}
		for (uint32_t b = 0; b < segment->blocks_count; b++) {
			struct segment_block block;

			if (segment_read(segment, b, SEGMENT_ROWS, &buffer, &block, &err)) {
				damage_found(history, "block", &err);
				continue;
			}
			visit_block(segment, &block, visit, context);
		}
	}
	segment_buffer_free(&buffer);
	store_snapshot_release(store, &snapshot);
}

/* All reports. */

static void add_found(void *context, const struct found *found)
{
	struct strbuf text = { 0 };

	put_found(&text, found);
	add_line(context, &text);
	strbuf_free(&text);
}

struct own_line {
	char *text;
	struct history_report *report;
};

static int own_order(const void *left, const void *right)
{
	return strcmp(((const struct own_line *)left)->text,
		      ((const struct own_line *)right)->text);
}

static struct own_line *own_lines(struct history *history)
{
	struct own_line *lines = mem_new_array(struct own_line, history->count);
	struct strbuf text = { 0 };

	for (size_t i = 0; i < history->count; i++) {
		put_own(&text, &history->reports[i]);
		lines[i] = (struct own_line){ mem_strndup(strbuf_text(&text), text.len),
					      &history->reports[i] };
		strbuf_clear(&text);
	}
	if (history->count)
		qsort(lines, history->count, sizeof(*lines), own_order);
	strbuf_free(&text);
	return lines;
}

static bool may_be_missing(struct history *history, const struct history_report *report)
{
	history->missing += report->fate == HISTORY_STORED;
	if (history->disk_lies)
		return true;
	return report->fate != HISTORY_STORED || report->start_ns < history->forgotten_before_ns;
}

/* What was found or not is known from now on. */
static void settle(struct history_report *report, bool found)
{
	report->fate = found ? HISTORY_STORED : HISTORY_DELETED;
}

void history_check(struct history *history, struct store *store)
{
	const struct store_query query = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct own_line *own;
	struct lines found = { 0 };
	size_t at = 0;

	history->missing = history->told = 0;
	visit_all(history, store, &query, add_found, &found);
	sort_lines(&found);
	own = own_lines(history);
	for (size_t i = 0; i < history->count; i++) {
		int order = at < found.count ? strcmp(own[i].text, found.items[at]) : -1;

		if (order > 0)
			fail_msg("never written, or found twice: %s", found.items[at]);
		if (order < 0 && !may_be_missing(history, own[i].report))
			fail_msg("missing: %s", own[i].text);
		if (!order && own[i].report->fate == HISTORY_DELETED && !history->disk_lies)
			fail_msg("found although deleted: %s", own[i].text);
		settle(own[i].report, !order);
		at += !order;
	}
	if (at < found.count)
		fail_msg("never written, or found twice: %s", found.items[at]);
	for (size_t i = 0; i < history->count; i++)
		free(own[i].text);
	free(own);
	free_lines(&found);
}

/* Sums: key and values, added up when lines are sorted. */

struct sum {
	char *key;
	int64_t values[HISTORY_COLUMNS_MAX];
	uint64_t reports;
	int64_t duration_ns;
};

struct sums {
	struct sum *items;
	size_t count, capacity;
	bool by_series;
	const struct store_query *query;
};

static void add_sum(struct sums *sums, const char *key, const int64_t *values, uint32_t columns,
		    uint64_t reports, int64_t duration_ns)
{
	struct sum *sum;

	mem_grow(sums->items, sums->count, sums->capacity);
	sum = &sums->items[sums->count++];
	*sum = (struct sum){ .key = mem_strndup(key, strlen(key)),
			     .reports = reports,
			     .duration_ns = duration_ns };
	for (uint32_t c = 0; c < columns; c++)
		sum->values[c] = values[c];
}

static int sum_order(const void *left, const void *right)
{
	return strcmp(((const struct sum *)left)->key, ((const struct sum *)right)->key);
}

static void finish_sums(struct sums *sums)
{
	size_t kept = 0;

	if (sums->count)
		qsort(sums->items, sums->count, sizeof(*sums->items), sum_order);
	for (size_t i = 0; i < sums->count; i++) {
		struct sum *sum = &sums->items[i];

		if (!kept || strcmp(sums->items[kept - 1].key, sum->key)) {
			sums->items[kept++] = *sum;
			continue;
		}
		for (uint32_t c = 0; c < HISTORY_COLUMNS_MAX; c++)
			sums->items[kept - 1].values[c] += sum->values[c];
		sums->items[kept - 1].reports += sum->reports;
		sums->items[kept - 1].duration_ns += sum->duration_ns;
		free(sum->key);
	}
	sums->count = kept;
}

static void free_sums(struct sums *sums)
{
	for (size_t i = 0; i < sums->count; i++)
		free(sums->items[i].key);
	free(sums->items);
}

static void sum_found(void *context, const struct found *found)
{
	const struct tables_view *view = &found->segment->view;
	struct sums *sums = context;
	struct strbuf key = { 0 };
	size_t len;

	strbuf_add_slice(&key, found->group);
	if (sums->by_series)
		strbuf_addf(&key, " %.*s %.*s",
			    SLICE_FMT(series_label(view, found->report->series, "comm")),
			    SLICE_FMT(series_label(view, found->report->series, "region")));
	len = key.len;
	add_sum(sums, strbuf_text(&key), NULL, 0, found->report->reports_count,
		found->report->duration_ns);
	for (uint32_t i = 0; i < found->report->row_count; i++) {
		struct strbuf stack = { 0 };
		int64_t values[HISTORY_COLUMNS_MAX];

		put_stack(&stack, view,
			  segment_node(found->segment, found->block->slots[row_at(found, i)]));
		for (uint32_t c = 0; c < found->columns; c++)
			values[c] = value_of(found, i, c);
		key.len = len;
		strbuf_addf(&key, " %s", strbuf_text(&stack));
		add_sum(sums, strbuf_text(&key), values, found->columns, 0, 0);
		strbuf_free(&stack);
	}
	strbuf_free(&key);
}

static void sum_own(struct sums *sums, const struct history_report *report)
{
	const struct group_shape *shape = &groups[report->group];
	char head[64], key[160];

	if (sums->by_series)
		snprintf(head, sizeof(head), "%s c%u r%u", shape->name, report->comm,
			 report->region);
	else
		snprintf(head, sizeof(head), "%s", shape->name);
	add_sum(sums, head, NULL, 0, 1, report->duration_ns);
	for (uint32_t i = 0; i < report->rows_count; i++) {
		snprintf(key, sizeof(key), "%s %s", head, report->rows[i].stack);
		add_sum(sums, key, report->rows[i].values, shape->columns, 0, 0);
	}
}

static void compare_sums(const struct sums *own, const struct sums *found)
{
	for (size_t i = 0; i < own->count && i < found->count; i++) {
		const struct sum *a = &own->items[i], *b = &found->items[i];

		if (strcmp(a->key, b->key))
			fail_msg("sums: expected \"%s\", found \"%s\"", a->key, b->key);
		if (a->values[0] != b->values[0] || a->values[1] != b->values[1] ||
		    a->reports != b->reports || a->duration_ns != b->duration_ns)
			fail_msg("sums of \"%s\": expected %lld, %lld of %llu reports, found %lld, "
				 "%lld of %llu",
				 a->key, (long long)a->values[0], (long long)a->values[1],
				 (unsigned long long)a->reports, (long long)b->values[0],
				 (long long)b->values[1], (unsigned long long)b->reports);
	}
	assert_int_equal(own->count, found->count);
}

void history_check_sums(struct history *history, struct store *store, int64_t from_ns,
			int64_t to_ns, bool by_series)
{
	const struct store_query query = {
		.from_ns = from_ns, .to_ns = to_ns, .sums_only = true, .by_series = by_series
	};
	struct sums own = { .by_series = by_series }, found = { .by_series = by_series };

	for (size_t i = 0; i < history->count; i++) {
		const struct history_report *report = &history->reports[i];

		if (report->fate == HISTORY_STORED && report->start_ns >= from_ns &&
		    report->start_ns < to_ns)
			sum_own(&own, report);
	}
	visit_all(history, store, &query, sum_found, &found);
	finish_sums(&own);
	finish_sums(&found);
	compare_sums(&own, &found);
	free_sums(&own);
	free_sums(&found);
}
