/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent encodes, ingest takes back: random tables -> encode_otlp -> ingest_from_otlp must
 * say the same thing. "The same" is compared as sorted lines of text, so ids and order are free.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/export/encode_otlp.h"
#include "server/ingest/ingest.h"
#include "tables_text.h"

#define NOW_NS (1700000000ll * CLOCK_NS_PER_S)
#define ROUNDS 300

static uint64_t random_state;

/* splitmix64 */
static uint32_t random_below(uint32_t bound)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ (z >> 31)) % bound);
}

static uint32_t random_text(struct tables *tables, const char *stem, uint32_t kinds)
{
	struct strbuf text = { 0 };
	uint32_t id;

	strbuf_addf(&text, "%s%u", stem, random_below(kinds));
	id = tables_string(tables, strbuf_slice(&text));
	strbuf_free(&text);
	return id;
}

static void set_source(struct tables *tables, struct frame *frame)
{
	frame->function = random_text(tables, "fünction", 30);
	if (!random_below(3))
		frame->system_name = random_text(tables, "_Z", 30);
	if (random_below(4))
		frame->file = random_text(tables, "source/file", 9);
	frame->line = random_below(3) ? random_below(5000) : 0;
	frame->column = random_below(3) ? 0 : random_below(80);
	frame->start_line = random_below(3) ? 0 : random_below(5000);
}

static void set_place(struct tables *tables, struct frame *frame)
{
	char path[32] = "/usr/lib/lib.so", id[16];

	frame->kind = FRAME_NATIVE;
	if (random_below(4)) { /* one path for each, as the first that came is kept */
		snprintf(id, sizeof(id), "0af%u", random_below(5));
		snprintf(path, sizeof(path), "/usr/lib/lib.so.%s", id);
		frame->build_id = tables_string(tables, slice_of(id));
	}
	frame->mapping_file = tables_string(tables, slice_of(path));
	frame->address = random_below(40) + 1;
	frame->flags = random_below(2) ? FRAME_ADDR_OFFSET : 0;
}

/* Adds a frame, now and then with others inlined into it; returns the node. */
static uint32_t random_step(struct tables *tables, uint32_t parent)
{
	static const uint32_t sourced[] = { FRAME_PYTHON, FRAME_JVM, FRAME_RUBY, FRAME_GO };
	struct frame frame = { 0 };
	uint32_t inlined = 0;

	switch (random_below(5)) {
	case 0: /* native code without names */
		set_place(tables, &frame);
		break;
	case 1: /* native code with names, and perhaps inlined functions */
		set_place(tables, &frame);
		set_source(tables, &frame);
		inlined = random_below(4);
		break;
	case 2:
		frame.kind = FRAME_KERNEL;
		frame.mapping_file =
			tables_string(tables, slice_of(random_below(2) ? "[kernel]" : "[ext4]"));
		frame.function = random_text(tables, "sys_", 9);
		frame.address = random_below(2) ? 0xffffffff81000000 + random_below(99) : 0;
		break;
	case 3:
		frame.kind = FRAME_MARKER;
		frame.function = random_text(tables, "[truncated: ", 3);
		break;
	default:
		frame.kind = sourced[random_below(4)];
		set_source(tables, &frame);
		break;
	}
	parent = tables_node(tables, parent, tables_frame(tables, &frame));
	while (inlined--) {
		set_source(tables, &frame);
		frame.flags |= FRAME_INLINED;
		parent = tables_node(tables, parent, tables_frame(tables, &frame));
	}
	return parent;
}

static uint32_t random_labels(struct tables *tables, bool of_series)
{
	struct label labels[4] = { 0 };
	uint32_t count = random_below(4);

	for (uint32_t i = 0; i < count; i++) {
		struct strbuf name = { 0 };

		strbuf_addf(&name, "label.%u", i);
		labels[i].name = tables_string(tables, strbuf_slice(&name));
		strbuf_free(&name);
		if (of_series || random_below(2)) {
			labels[i].value = random_text(tables, "välue ", 5);
		} else {
			labels[i].numeric = 1;
			labels[i].number = (int64_t)random_below(9) - 4;
			labels[i].unit = random_below(2) ? random_text(tables, "unit", 2) : 0;
		}
	}
	return tables_label_set(tables, labels, count);
}

static uint32_t random_series(struct tables *tables)
{
	static const char *const types[][5] = {
		{ "on_cpu", "samples", "count", "cpu", "nanoseconds" },
		{ "off_cpu", "off_cpu", "nanoseconds", "", "" },
		{ "memory", "inuse_space", "bytes", "space", "bytes" },
	};
	const char *const *type = types[random_below(3)];
	struct group group = { .name = tables_string(tables, slice_of(type[0])),
			       .period_type = tables_string(tables, slice_of(type[3])),
			       .period_unit = tables_string(tables, slice_of(type[4])),
			       .column_count = 1,
			       .period = random_below(3) * 1000 };
	struct column column = { tables_string(tables, slice_of(type[1])),
				 tables_string(tables, slice_of(type[2])), COLUMN_DELTA };

	return tables_series(tables, random_labels(tables, true),
			     tables_group(tables, &group, &column));
}

/* Of some samples of each row. */
static void random_moments(struct tables *tables)
{
	struct tables_view view = tables_view_of(tables);
	const struct report *report = &view.reports[view.reports_count - 1];
	struct moment moments[30 * 8];
	uint32_t count = 0;

	for (uint32_t row = 0; row < report->row_count; row++) {
		int64_t value = view.values[report->value_first + row];
		uint32_t wanted = random_below(8), tick = random_below(100);

		if (wanted > value)
			wanted = (uint32_t)value;
		for (; wanted; wanted--, tick += random_below(900))
			moments[count++] = (struct moment){ row, tick, 0 };
	}
	assert_true(tables_moments(tables, moments, count));
}

/* Rows of a report are distinct here: ingest joins equal ones. */
static void random_report(struct tables *tables, uint32_t series)
{
	uint32_t node = 0, rows = random_below(30);

	tables_report_begin(tables, series, NOW_NS + random_below(1000), 1 + random_below(1000),
			    random_below(UINT32_MAX));
	for (uint32_t i = 0; i < rows; i++) {
		int64_t value = 1 + random_below(1000);
		struct tables_view view = tables_view_of(tables);
		uint32_t labels = random_labels(tables, false);
		bool seen = false;

		for (uint32_t up = random_below(6); up && node; up--)
			node = view.nodes[node].parent;
		for (uint32_t down = 1 + random_below(12); down; down--)
			node = random_step(tables, node);
		for (uint64_t j = view.reports[view.reports_count - 1].row_first;
		     j < view.rows_count; j++)
			seen |= view.rows[j].stack == node && view.rows[j].label_set == labels;
		if (!seen)
			assert_true(tables_row(tables, node, labels, &value));
	}
	if (random_below(2))
		random_moments(tables);
}

static void fill(struct tables *tables)
{
	uint32_t series_count = 1 + random_below(5);

	for (uint32_t i = 0; i < series_count; i++) {
		uint32_t series = random_series(tables);

		for (uint32_t reports = random_below(4); reports; reports--)
			random_report(tables, series);
	}
}

static void random_tables_come_back_as_they_were(void **state)
{
	struct ingest_scratch *scratch = ingest_scratch_new(NULL);
	struct tables sent, taken;
	struct strbuf wire = { 0 };

	(void)state;
	tables_init(&sent);
	tables_init(&taken);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct ingest_partial partial;
		struct tables_view view;
		struct err err = { 0 };

		random_state = round;
		tables_reset(&sent);
		tables_reset(&taken);
		strbuf_clear(&wire);
		fill(&sent);
		view = tables_view_of(&sent);
		encode_otlp(&view, &wire);
		if (ingest_from_otlp(scratch, &ingest_limits_default, strbuf_slice(&wire), NOW_NS,
				     &taken, &partial, &err))
			fail_msg("round %u: %s", round, err.message);
		assert_int_equal(partial.rejected_profiles, 0);
		assert_same_tables(&sent, &taken);
	}
	strbuf_free(&wire);
	tables_free(&sent);
	tables_free(&taken);
	ingest_scratch_free(scratch);
}

static void columns_of_a_group_become_groups_of_their_own(void **state)
{
	struct ingest_scratch *scratch = ingest_scratch_new(NULL);
	struct tables sent, taken;
	struct strbuf wire = { 0 };
	struct group group = { .column_count = 2 };
	struct column columns[2] = { { 0 } };
	struct frame frame = { .kind = FRAME_PYTHON };
	struct ingest_partial partial;
	struct tables_view view;
	const int64_t first[2] = { 1, 100 }, second[2] = { 0, 23 };

	(void)state;
	tables_init(&sent);
	tables_init(&taken);
	group.name = tables_string(&sent, SLICE_LITERAL("memory"));
	columns[0].sample_type = tables_string(&sent, SLICE_LITERAL("alloc_objects"));
	columns[1].sample_type = tables_string(&sent, SLICE_LITERAL("alloc_space"));
	frame.function = tables_string(&sent, SLICE_LITERAL("main"));
	tables_report_begin(&sent, tables_series(&sent, 0, tables_group(&sent, &group, columns)),
			    NOW_NS, 1000, 5);
	tables_row(&sent, tables_node(&sent, 0, tables_frame(&sent, &frame)), 0, first);
	tables_row(&sent, 0, 0, second);
	view = tables_view_of(&sent);
	encode_otlp(&view, &wire);
	assert_int_equal(ingest_from_otlp(scratch, &ingest_limits_default, strbuf_slice(&wire),
					  NOW_NS, &taken, &partial, NULL),
			 0);
	view = tables_view_of(&taken);
	assert_int_equal(view.reports_count, 2);
	assert_int_equal(view.groups_count, 2);
	assert_int_equal(view.totals[0], 1);
	assert_int_equal(view.totals[1], 123);
	assert_int_equal(view.reports[0].row_count, 1); /* no row for a value of 0 */
	assert_int_equal(view.reports[1].row_count, 2);
	assert_int_equal(view.reports[0].batch_id, view.reports[1].batch_id);
	strbuf_free(&wire);
	tables_free(&sent);
	tables_free(&taken);
	ingest_scratch_free(scratch);
}

static void nothing_to_send_is_an_empty_request(void **state)
{
	struct ingest_scratch *scratch = ingest_scratch_new(NULL);
	struct ingest_partial partial;
	struct strbuf wire = { 0 };
	struct tables tables;
	struct tables_view view;

	(void)state;
	tables_init(&tables);
	view = tables_view_of(&tables);
	encode_otlp(&view, &wire);
	assert_int_equal(wire.len, 0);
	assert_int_equal(ingest_from_otlp(scratch, &ingest_limits_default, strbuf_slice(&wire),
					  NOW_NS, &tables, &partial, NULL),
			 0);
	assert_int_equal(tables.reports.count, 0);
	tables_free(&tables);
	ingest_scratch_free(scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_tables_come_back_as_they_were),
		cmocka_unit_test(columns_of_a_group_become_groups_of_their_own),
		cmocka_unit_test(nothing_to_send_is_an_empty_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
