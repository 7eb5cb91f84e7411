/* SPDX-License-Identifier: Apache-2.0 */
/* The encoding of tables: round trips, and bytes that were damaged or made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "batches.h"
#include "server/persist/log/tables_check.h"
#include "server/persist/log/tables_codec.h"
#include "server/persist/disk/vfs.h"

#define RAW_BYTES_MAX ((uint64_t)1 << 20)

/* Every kind of thing: two groups, gauges, sample labels with numbers, shared prefixes. */
static void fill(struct tables *tables)
{
	static const enum column_kind kinds[] = { COLUMN_GAUGE, COLUMN_DELTA };
	static const char *const deep[] = { "main", "f3", "alloc" };
	struct label label;
	uint32_t series, stack;
	int64_t values[] = { -5, INT64_MAX };

	tables_init(tables);
	for (uint32_t n = 0; n < 40; n++)
		batches_add(tables, 39 - n); /* rows and reports out of order */
	series = batches_series(tables, "heap", kinds, 2);
	stack = batches_stack(tables, deep, 3);
	label = (struct label){ .name = tables_string(tables, SLICE_LITERAL("bytes")),
				.unit = tables_string(tables, SLICE_LITERAL("By")),
				.numeric = 1,
				.number = -48 };
	tables_report_begin(tables, series, BATCHES_START_S * CLOCK_NS_PER_S, 0, UINT64_MAX);
	tables_row(tables, stack, tables_label_set(tables, &label, 1), values);
	tables_row(tables, stack, 0, values); /* saturates */
}

static void assert_same_array(const void *a, const void *b, size_t bytes)
{
	if (bytes)
		assert_memory_equal(a, b, bytes);
}

/* Padding is anything: compared is what lies before and behind it. */
static void assert_same_groups(const struct tables_view *a, const struct tables_view *b)
{
	for (uint32_t i = 0; i < a->groups_count; i++) {
		const struct group *left = &a->groups[i], *right = &b->groups[i];

		assert_memory_equal(left, right, offsetof(struct group, column_count));
		assert_int_equal(left->column_count, right->column_count);
		assert_true(left->period == right->period);
	}
}

static void assert_same_reports(const struct tables_view *a, const struct tables_view *b)
{
	for (uint32_t i = 0; i < a->reports_count; i++) {
		const struct report *left = &a->reports[i], *right = &b->reports[i];

		assert_memory_equal(left, right, offsetof(struct report, moment_count));
		assert_int_equal(left->moment_count, right->moment_count);
	}
}

static void assert_same(const struct tables_view *a, const struct tables_view *b)
{
	assert_int_equal(a->strings_count, b->strings_count);
	for (uint32_t i = 0; i < a->strings_count; i++)
		assert_true(slice_equal(tables_text(a, i), tables_text(b, i)));
	assert_int_equal(a->labels_count, b->labels_count);
	assert_int_equal(a->rows_count, b->rows_count);
	assert_int_equal(a->nodes_count, b->nodes_count);
	assert_int_equal(a->reports_count, b->reports_count);
	assert_same_array(a->labels, b->labels, a->labels_count * sizeof(*a->labels));
	assert_same_array(a->label_sets, b->label_sets,
			  a->label_sets_count * sizeof(*a->label_sets));
	assert_same_groups(a, b);
	assert_same_array(a->columns, b->columns, a->columns_count * sizeof(*a->columns));
	assert_same_array(a->series, b->series, a->series_count * sizeof(*a->series));
	assert_same_array(a->frames, b->frames, a->frames_count * sizeof(*a->frames));
	assert_same_array(a->nodes + 1, b->nodes + 1, (a->nodes_count - 1) * sizeof(*a->nodes));
	assert_same_reports(a, b);
	assert_same_array(a->rows, b->rows, a->rows_count * sizeof(*a->rows));
	assert_same_array(a->values, b->values, a->values_count * sizeof(*a->values));
	assert_int_equal(a->moments_count, b->moments_count);
	assert_same_array(a->moments, b->moments, a->moments_count * sizeof(*a->moments));
	if (a->moments_count)
		assert_same_array(a->links, b->links, a->links_count * sizeof(*a->links));
	assert_same_array(a->totals, b->totals, a->totals_count * sizeof(*a->totals));
}

static void tables_survive_a_round_trip(void **state)
{
	struct tables tables;
	struct tables_view view;

	(void)state;
	fill(&tables);
	view = tables_view_of(&tables);
	for (int level = 0; level <= 3; level += 3) {
		struct tables_layout layout;
		struct tables_image image;
		struct strbuf bytes = { 0 };
		struct err err = { 0 };

		tables_encode(&view, level, &bytes, &layout);
		assert_int_equal(layout.count, TABLES_SECTIONS_END - 1);
		if (tables_decode(strbuf_slice(&bytes), RAW_BYTES_MAX, &image, &err))
			fail_msg("%s", err.message);
		assert_same(&view, &image.view);
		tables_image_free(&image);
		strbuf_free(&bytes);
	}
	tables_free(&tables);
}

/* tests/fuzz/corpus/tables_codec/plain was written when each field of a frame took a number. */
static void frames_of_the_former_version_are_read(void **state)
{
	struct tables_image image, again;
	struct strbuf bytes = { 0 }, encoded = { 0 };
	char path[4096];
	struct err err;

	(void)state;
	snprintf(path, sizeof(path), "%s/fuzz/corpus/tables_codec/plain", getenv("FIRN_TESTS"));
	if (vfs_read_whole(&vfs_posix, path, RAW_BYTES_MAX, &bytes, &err) ||
	    tables_decode(strbuf_slice(&bytes), RAW_BYTES_MAX, &image, &err))
		fail_msg("%s", err.message);
	assert_true(image.view.frames_count > 1);
	tables_encode(&image.view, 0, &encoded, NULL);
	assert_true(encoded.len < bytes.len);
	assert_int_equal(tables_decode(strbuf_slice(&encoded), RAW_BYTES_MAX, &again, &err), 0);
	assert_same(&image.view, &again.view);
	tables_image_free(&image);
	tables_image_free(&again);
	strbuf_free(&bytes);
	strbuf_free(&encoded);
}

static void empty_tables_survive_a_round_trip(void **state)
{
	struct tables tables;
	struct tables_view view;
	struct tables_image image;
	struct strbuf bytes = { 0 };

	(void)state;
	tables_init(&tables);
	view = tables_view_of(&tables);
	tables_encode(&view, 0, &bytes, NULL);
	assert_int_equal(tables_decode(strbuf_slice(&bytes), RAW_BYTES_MAX, &image, NULL), 0);
	assert_same(&view, &image.view);
	tables_image_free(&image);
	strbuf_free(&bytes);
	tables_free(&tables);
}

static void any_changed_byte_is_noticed(void **state)
{
	struct tables tables;
	struct tables_view view;
	struct tables_layout layout;
	struct strbuf bytes = { 0 };

	(void)state;
	fill(&tables);
	view = tables_view_of(&tables);
	tables_encode(&view, 3, &bytes, &layout);
	for (size_t i = 0; i < bytes.len; i++) {
		struct tables_image image;

		bytes.data[i] ^= (char)(1 << i % 8);
		assert_int_not_equal(
			tables_decode(strbuf_slice(&bytes), RAW_BYTES_MAX, &image, NULL), 0);
		bytes.data[i] ^= (char)(1 << i % 8);
	}
	for (size_t len = 0; len < bytes.len; len++) {
		struct tables_image image;

		if (len == layout.sections[TABLES_SECTION_LINKS - 1].offset)
			continue; /* tables without moments: the log knows how long they are */
		assert_int_not_equal(
			tables_decode(slice_from(bytes.data, len), RAW_BYTES_MAX, &image, NULL), 0);
	}
	strbuf_free(&bytes);
	tables_free(&tables);
}

static void sections_over_the_budget_are_refused(void **state)
{
	struct tables tables;
	struct tables_view view;
	struct tables_image image;
	struct strbuf bytes = { 0 };

	(void)state;
	fill(&tables);
	view = tables_view_of(&tables);
	tables_encode(&view, 3, &bytes, NULL);
	assert_int_equal(tables_decode(strbuf_slice(&bytes), 100, &image, NULL), -ERR_LIMIT);
	strbuf_free(&bytes);
	tables_free(&tables);
}

static void unknown_sections_are_skipped(void **state)
{
	struct strbuf bytes = { 0 };
	struct tables tables;
	struct tables_view view;
	struct tables_image image;

	(void)state;
	fill(&tables);
	view = tables_view_of(&tables);
	strbuf_add_u32(&bytes, 999);
	strbuf_add_u32(&bytes, 1);
	strbuf_add_u64(&bytes, 3);
	strbuf_add_u64(&bytes, 3);
	strbuf_add_u32(&bytes, hash_crc32c(hash_crc32c(0, bytes.data, 24), "new", 3));
	strbuf_add_text(&bytes, "new");
	tables_encode(&view, 3, &bytes, NULL);
	assert_int_equal(tables_decode(strbuf_slice(&bytes), RAW_BYTES_MAX, &image, NULL), 0);
	assert_same(&view, &image.view);
	tables_image_free(&image);
	strbuf_free(&bytes);
	tables_free(&tables);
}

/* Each breaks one promise of model/tables.h in a view that is otherwise good. */
static void break_totals(struct tables *t)
{
	((int64_t *)t->totals.data)[3]++;
}

static void break_parent(struct tables *t)
{
	((struct node *)t->nodes.data)[2].parent = 2;
}

static void break_stack(struct tables *t)
{
	((struct row *)t->rows.data)[1].stack = (uint32_t)t->nodes.count;
}

static void break_frame(struct tables *t)
{
	((struct frame *)t->frames.data)[1].file = (uint32_t)t->strings.count;
}

static void break_series(struct tables *t)
{
	((struct series *)t->series.data)[1].label_set = 1000;
}

static void break_label_order(struct tables *t)
{
	struct label labels[] = { { .name = 1, .value = 1 }, { .name = 2, .value = 1 } };
	uint32_t id = tables_label_set(t, labels, 2);
	struct label_set *set = &((struct label_set *)t->label_sets.data)[id];
	struct label *first = &((struct label *)t->labels.data)[set->label_first], swap = first[0];

	first[0] = first[1];
	first[1] = swap;
}

static void break_report(struct tables *t)
{
	((struct report *)t->reports.data)[1].row_first++;
}

static void break_kind(struct tables *t)
{
	((struct column *)t->columns.data)[0].kind = 9;
}

static void broken_tables_are_not_accepted(void **state)
{
	static void (*const breakers[])(struct tables *) = {
		break_totals, break_parent,	 break_stack,  break_frame,
		break_series, break_label_order, break_report, break_kind,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(breakers) / sizeof(breakers[0]); i++) {
		struct tables tables;
		struct tables_view view;
		struct err err = { 0 };

		fill(&tables);
		view = tables_view_of(&tables);
		assert_int_equal(tables_check(&view, &err), 0);
		breakers[i](&tables);
		view = tables_view_of(&tables);
		if (tables_check(&view, &err) != -ERR_CORRUPT)
			fail_msg("breaker %zu was not noticed", i);
		tables_free(&tables);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_survive_a_round_trip),
		cmocka_unit_test(frames_of_the_former_version_are_read),
		cmocka_unit_test(empty_tables_survive_a_round_trip),
		cmocka_unit_test(any_changed_byte_is_noticed),
		cmocka_unit_test(sections_over_the_budget_are_refused),
		cmocka_unit_test(unknown_sections_are_skipped),
		cmocka_unit_test(broken_tables_are_not_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
