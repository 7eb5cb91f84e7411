/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: interning, limits, reports and their totals, copying from one set into another. */
#include "model/tables.h"

#include "base/strbuf.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The thread sanitizer leaves a program 0.5 to 1.5 TB of addresses. */
#define MANY (BUILT_WITH_TSAN ? 16 : 1000)

static int set_up(void **state)
{
	struct tables *tables = malloc(sizeof(*tables));

	tables_init(tables);
	*state = tables;
	return 0;
}

static int tear_down(void **state)
{
	tables_free(*state);
	free(*state);
	return 0;
}

static uint32_t text(struct tables *tables, const char *value)
{
	return tables_string(tables, slice_of(value));
}

static struct label label(struct tables *tables, const char *name, const char *value)
{
	return (struct label){ .name = text(tables, name), .value = text(tables, value) };
}

static struct label number(struct tables *tables, const char *name, int64_t value, const char *unit)
{
	return (struct label){ .name = text(tables, name),
			       .numeric = 1,
			       .number = value,
			       .unit = text(tables, unit) };
}

static uint32_t frame(struct tables *tables, const char *function)
{
	const struct frame made = { .kind = FRAME_NATIVE, .function = text(tables, function) };

	return tables_frame(tables, &made);
}

/* The node of a stack given root first, as "main;run;work". */
static uint32_t stack(struct tables *tables, const char *functions)
{
	struct slice rest = slice_of(functions);
	uint32_t node = 0;

	while (rest.len) {
		struct slice name = slice_cut(rest, ';', &rest);
		const struct frame made = { .kind = FRAME_NATIVE,
					    .function = tables_string(tables, name) };

		node = tables_node(tables, node, tables_frame(tables, &made));
	}
	return node;
}

static uint32_t group(struct tables *tables, const char *name, uint32_t columns)
{
	struct column made[TABLES_COLUMNS_PER_GROUP_MAX];
	const struct group header = { .name = text(tables, name),
				      .period_type = text(tables, "cpu"),
				      .period_unit = text(tables, "nanoseconds"),
				      .column_count = columns,
				      .period = 52631578 };

	for (uint32_t i = 0; i < columns; i++) {
		char type[16];

		snprintf(type, sizeof(type), "type%u", i);
		made[i] = (struct column){ .sample_type = text(tables, type),
					   .sample_unit = text(tables, "count") };
	}
	return tables_group(tables, &header, made);
}

static uint32_t series(struct tables *tables, const char *comm, uint32_t columns)
{
	struct label labels[] = { label(tables, "node", "a"), label(tables, "comm", comm) };

	return tables_series(tables, tables_label_set(tables, labels, 2),
			     group(tables, "on_cpu", columns));
}

static void id_zero_is_the_empty_thing(void **state)
{
	struct tables *tables = *state;
	struct tables_view view = tables_view_of(tables);

	assert_int_equal(view.strings_count, 1);
	assert_int_equal(tables_text(&view, 0).len, 0);
	assert_int_equal(view.label_sets_count, 1);
	assert_int_equal(view.label_sets[0].label_count, 0);
	assert_int_equal(view.nodes_count, 1);
	assert_int_equal(text(tables, ""), 0);
	assert_int_equal(tables_label_set(tables, NULL, 0), 0);
}

static void things_are_kept_once(void **state)
{
	struct tables *tables = *state;

	assert_int_equal(text(tables, "main"), text(tables, "main"));
	assert_int_not_equal(text(tables, "main"), text(tables, "Main"));
	assert_int_equal(frame(tables, "main"), frame(tables, "main"));
	assert_int_not_equal(frame(tables, "main"), frame(tables, "run"));
	assert_int_equal(stack(tables, "main;run"), stack(tables, "main;run"));
	assert_int_not_equal(stack(tables, "main;run"), stack(tables, "run;main"));
	assert_int_equal(series(tables, "cc1", 2), series(tables, "cc1", 2));
	assert_int_not_equal(series(tables, "cc1", 2), series(tables, "ld", 2));
	assert_int_not_equal(group(tables, "memory", 1), group(tables, "memory", 2));
}

static void strings_may_hold_any_bytes(void **state)
{
	struct tables *tables = *state;
	uint32_t id = tables_string(tables, slice_from("a\0\xff", 3));
	struct tables_view view;

	assert_int_not_equal(id, text(tables, "a"));
	view = tables_view_of(tables);
	assert_true(slice_equal(tables_text(&view, id), slice_from("a\0\xff", 3)));
}

static void frames_differ_by_what_they_are(void **state)
{
	struct tables *tables = *state;
	uint32_t s = text(tables, "s");
	const struct frame variants[] = {
		{ 0 },
		{ .kind = FRAME_GO },
		{ .flags = FRAME_INLINED },
		{ .address = 1 },
		{ .mapping_file = s },
		{ .build_id = s },
		{ .function = s },
		{ .system_name = s },
		{ .file = s },
		{ .line = 1 },
		{ .mapping_file = s, .function = s }, /* no build id, no file: which code is it? */
	};
	const uint32_t count = sizeof(variants) / sizeof(variants[0]);

	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(tables_frame(tables, &variants[i]), i);
	assert_int_equal(tables_view_of(tables).frames_count, count);
}

/* A producer that tells them at times, or tells them differently, has the same stacks still. */
static void what_producers_write_besides_makes_no_other_frame(void **state)
{
	struct tables *tables = *state;
	uint32_t s = text(tables, "s"), other = text(tables, "other");
	struct frame frame = { .function = s,
			       .file = s,
			       .line = 7,
			       .mapping_file = s,
			       .system_name = s,
			       .column = 2,
			       .start_line = 3 };
	struct frame place = { .build_id = s, .address = 7, .mapping_file = s };
	uint32_t id = tables_frame(tables, &frame), place_id = tables_frame(tables, &place);
	struct tables_view view;

	assert_int_not_equal(id, place_id);
	for (int round = 0; round < 2; round++) {
		frame.start_line = frame.column = round;
		frame.system_name = frame.mapping_file = place.mapping_file = round ? other : 0;
		assert_int_equal(tables_frame(tables, &frame), id);
		assert_int_equal(tables_frame(tables, &place), place_id);
	}
	view = tables_view_of(tables);
	assert_int_equal(view.frames[id].start_line, 3);
	assert_int_equal(view.frames[id].column, 2);
	assert_int_equal(view.frames[id].system_name, s);
	assert_int_equal(view.frames[place_id].mapping_file, s);
}

static void parents_come_before_their_children(void **state)
{
	struct tables *tables = *state;
	struct tables_view view;

	stack(tables, "a;b;c;d");
	stack(tables, "a;b;x");
	stack(tables, "b;a");
	view = tables_view_of(tables);
	assert_int_equal(view.nodes_count, 1 + 4 + 1 + 2);
	for (uint32_t id = 1; id < view.nodes_count; id++)
		assert_true(view.nodes[id].parent < id);
}

static void label_sets_are_sorted_and_without_doubles(void **state)
{
	struct tables *tables = *state;
	struct label one[] = { label(tables, "z", "1"), label(tables, "a", "2"),
			       label(tables, "m", "3"), label(tables, "a", "2") };
	struct label other[] = { label(tables, "m", "3"), label(tables, "a", "2"),
				 label(tables, "z", "1") };
	uint32_t id = tables_label_set(tables, one, 4);
	struct tables_view view;

	assert_int_equal(id, tables_label_set(tables, other, 3));
	view = tables_view_of(tables);
	assert_int_equal(view.label_sets[id].label_count, 3);
	assert_true(slice_is(tables_label_value(&view, id, SLICE_LITERAL("a")), "2"));
	assert_true(slice_is(tables_label_value(&view, id, SLICE_LITERAL("z")), "1"));
	assert_true(slice_is(tables_label_value(&view, id, SLICE_LITERAL("missing")), ""));
	assert_true(slice_is(tables_label_value(&view, 0, SLICE_LITERAL("a")), ""));
}

static void numbers_and_units_tell_labels_apart(void **state)
{
	struct tables *tables = *state;
	struct label variants[][1] = {
		{ label(tables, "size", "") },
		{ number(tables, "size", 0, "") },
		{ number(tables, "size", 0, "bytes") },
		{ number(tables, "size", -1, "bytes") },
		{ number(tables, "size", INT64_MAX, "bytes") },
	};

	for (uint32_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		assert_int_equal(tables_label_set(tables, variants[i], 1), 1 + i);
}

static void full_is_passed_on(void **state)
{
	struct tables *tables = *state;
	const struct frame bad_frame = { .file = TABLES_FULL };
	const struct group bad_group = { .name = TABLES_FULL, .column_count = 1 };
	const struct group good_group = { .column_count = 1 };
	const struct column bad_column = { .sample_type = TABLES_FULL };
	const struct column good_column = { 0 };
	struct label bad_label = { .value = TABLES_FULL };
	const int64_t value = 1;
	uint32_t id = series(tables, "cc1", 1);

	assert_int_equal(tables_frame(tables, &bad_frame), TABLES_FULL);
	assert_int_equal(tables_node(tables, TABLES_FULL, 0), TABLES_FULL);
	assert_int_equal(tables_node(tables, 0, TABLES_FULL), TABLES_FULL);
	assert_int_equal(tables_label_set(tables, &bad_label, 1), TABLES_FULL);
	assert_int_equal(tables_group(tables, &bad_group, &good_column), TABLES_FULL);
	assert_int_equal(tables_group(tables, &good_group, &bad_column), TABLES_FULL);
	assert_int_equal(tables_series(tables, TABLES_FULL, 0), TABLES_FULL);
	assert_int_equal(tables_series(tables, 0, TABLES_FULL), TABLES_FULL);
	assert_int_equal(tables_report_begin(tables, TABLES_FULL, 0, 0, 0), TABLES_FULL);
	assert_int_equal(tables_report_begin(tables, id, 0, 0, 0), 0);
	assert_false(tables_row(tables, TABLES_FULL, 0, &value));
	assert_false(tables_row(tables, 0, TABLES_FULL, &value));
}

/* Each reserves the address space of its limits. */
static void many_fit_into_the_address_space(void **state)
{
	struct tables *many = calloc(MANY, sizeof(*many));

	(void)state;
	for (int i = 0; i < MANY; i++)
		tables_init(&many[i]);
	for (int i = 0; i < MANY; i++)
		tables_free(&many[i]);
	free(many);
}

static void reports_keep_totals_per_column(void **state)
{
	struct tables *tables = *state;
	uint32_t id = series(tables, "cc1", 2);
	const struct report *report;
	struct tables_view view;

	assert_int_equal(tables_report_begin(tables, id, 1000, 10, 1), 0);
	assert_true(tables_row(tables, stack(tables, "a"), 0, (const int64_t[]){ 1, 10 }));
	assert_true(tables_row(tables, stack(tables, "a;b"), 0, (const int64_t[]){ 2, -4 }));
	assert_int_equal(tables_report_begin(tables, id, 2000, 10, 1), 1);
	assert_true(tables_row(tables, stack(tables, "a"), 0, (const int64_t[]){ 5, 6 }));

	view = tables_view_of(tables);
	assert_int_equal(tables_series_columns(&view, id), 2);
	report = &view.reports[0];
	assert_int_equal(report->row_count, 2);
	assert_int_equal(report->start_ns, 1000);
	assert_int_equal(view.totals[report->total_first], 3);
	assert_int_equal(view.totals[report->total_first + 1], 6);
	assert_int_equal(view.values[report->value_first + 2], 2);
	assert_int_equal(view.values[report->value_first + 3], -4);
	report = &view.reports[1];
	assert_int_equal(report->row_first, 2);
	assert_int_equal(view.rows[report->row_first].stack, stack(tables, "a"));
	assert_int_equal(view.totals[report->total_first], 5);
}

static void totals_saturate(void **state)
{
	struct tables *tables = *state;
	const int64_t most[] = { INT64_MAX, INT64_MIN };
	const int64_t more[] = { 1, -1 };
	struct tables_view view;

	tables_report_begin(tables, series(tables, "cc1", 2), 0, 0, 0);
	tables_row(tables, 0, 0, most);
	tables_row(tables, 0, 0, more);
	view = tables_view_of(tables);
	assert_true(view.totals[0] == INT64_MAX);
	assert_true(view.totals[1] == INT64_MIN);
}

static void a_cancelled_report_leaves_nothing(void **state)
{
	struct tables *tables = *state;
	uint32_t id = series(tables, "cc1", 2);
	struct tables_view view;

	tables_report_begin(tables, id, 1, 0, 0);
	tables_row(tables, 0, 0, (const int64_t[]){ 1, 2 });
	tables_report_begin(tables, id, 2, 0, 0);
	tables_row(tables, 0, 0, (const int64_t[]){ 30, 40 });
	tables_report_cancel(tables);
	view = tables_view_of(tables);
	assert_int_equal(view.reports_count, 1);
	assert_int_equal(view.rows_count, 1);
	assert_int_equal(view.values_count, 2);
	assert_int_equal(view.totals_count, 2);

	/* What comes next starts from zero totals. */
	tables_report_begin(tables, id, 3, 0, 0);
	tables_row(tables, 0, 0, (const int64_t[]){ 5, 6 });
	view = tables_view_of(tables);
	assert_int_equal(view.totals[view.reports[1].total_first], 5);
	assert_int_equal(view.totals[0], 1);
}

static void a_view_outlives_later_additions(void **state)
{
	struct tables *tables = *state;
	uint32_t early = text(tables, "early");
	struct tables_view view = tables_view_of(tables);

	for (int i = 0; i < 100000; i++) {
		char name[24];

		snprintf(name, sizeof(name), "function%d", i);
		frame(tables, name);
	}
	assert_true(slice_is(tables_text(&view, early), "early"));
	assert_int_equal(view.strings_count, 2);
	assert_int_equal(tables_view_of(tables).strings_count, 100002);
}

#define SHARED_NODES 20000

struct shared {
	pthread_mutex_t lock;
	struct tables *tables;
};

static void *grow_a_deep_stack(void *context)
{
	struct shared *shared = context;
	uint32_t node = 0;

	for (int i = 0; i < SHARED_NODES; i++) {
		pthread_mutex_lock(&shared->lock);
		node = tables_node(shared->tables, node, frame(shared->tables, "f"));
		pthread_mutex_unlock(&shared->lock);
	}
	return NULL;
}

static void readers_need_no_lock_below_their_view(void **state)
{
	struct shared shared = { PTHREAD_MUTEX_INITIALIZER, *state };
	uint32_t seen = 0;
	pthread_t writer;

	assert_int_equal(pthread_create(&writer, NULL, grow_a_deep_stack, &shared), 0);
	while (seen < SHARED_NODES + 1) {
		struct tables_view view;

		pthread_mutex_lock(&shared.lock);
		view = tables_view_of(shared.tables);
		pthread_mutex_unlock(&shared.lock);
		for (uint32_t id = seen ? seen : 1; id < view.nodes_count; id++)
			assert_int_equal(view.nodes[id].parent, id - 1);
		seen = view.nodes_count;
	}
	pthread_join(writer, NULL);
}

static void reset_makes_them_as_new(void **state)
{
	struct tables *tables = *state;
	size_t bytes = tables_bytes(tables);

	for (int round = 0; round < 3; round++) {
		struct tables_view view;

		for (int i = 0; i < 50000; i++) {
			char name[32];

			snprintf(name, sizeof(name), "r%d_%d", round, i);
			tables_node(tables, 0, frame(tables, name));
		}
		tables_report_begin(tables, series(tables, "cc1", 1), 0, 0, 0);
		tables_row(tables, 1, 0, &(const int64_t){ 7 });
		tables_reset(tables);
		view = tables_view_of(tables);
		assert_int_equal(view.strings_count, 1);
		assert_int_equal(view.nodes_count, 1);
		assert_int_equal(view.reports_count, 0);
		assert_int_equal(view.totals_count, 0);
		assert_int_equal(text(tables, "first"), 1);
		tables_reset(tables);
	}
	assert_true(tables_bytes(tables) < bytes + ((size_t)2 << 20));
}

/* Root first, as "main;run". */
static void print_stack(const struct tables_view *view, uint32_t node, struct strbuf *out)
{
	uint32_t path[64];
	size_t depth = 0;

	for (; node; node = view->nodes[node].parent)
		path[depth++] = node;
	while (depth) {
		const struct frame *f = &view->frames[view->nodes[path[--depth]].frame];

		strbuf_add_slice(out, tables_text(view, f->function));
		if (depth)
			strbuf_add_byte(out, ';');
	}
}

/* Everything the reports say, ids resolved, so that two sets of tables can be compared. */
static char *describe(const struct tables_view *view)
{
	struct strbuf out = { 0 };

	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];
		const struct series *of = &view->series[report->series];
		struct slice comm = tables_label_value(view, of->label_set, SLICE_LITERAL("comm"));
		uint32_t columns = tables_series_columns(view, report->series);

		strbuf_addf(&out, "%.*s{comm=%.*s} at %lld:\n",
			    SLICE_FMT(tables_text(view, view->groups[of->group].name)),
			    SLICE_FMT(comm), (long long)report->start_ns);
		for (uint32_t r = 0; r < report->row_count; r++) {
			const struct row *row = &view->rows[report->row_first + r];

			print_stack(view, row->stack, &out);
			for (uint32_t c = 0; c < columns; c++)
				strbuf_addf(&out, " %lld",
					    (long long)view->values[report->value_first +
								    r * columns + c]);
			strbuf_addf(&out, " labels=%u\n",
				    view->label_sets[row->label_set].label_count);
		}
	}
	return out.data;
}

static void fill(struct tables *tables)
{
	struct label thread[] = { number(tables, "tid", 17, "") };
	uint32_t labels = tables_label_set(tables, thread, 1);

	tables_report_begin(tables, series(tables, "cc1", 2), 1000, 10, 1);
	tables_row(tables, stack(tables, "main;parse;lex"), labels, (const int64_t[]){ 1, 2 });
	tables_row(tables, stack(tables, "main;parse"), 0, (const int64_t[]){ 3, 4 });
	tables_report_begin(tables, series(tables, "ld", 1), 2000, 10, 2);
	tables_row(tables, stack(tables, "main;link"), 0, (const int64_t[]){ 5 });
}

static void copies_say_the_same_under_other_ids(void **state)
{
	struct tables *into = *state;
	struct tables_view from_view, into_view;
	struct tables_copy copy;
	char *before, *after;
	struct tables from;

	tables_init(&from);
	fill(&from);
	frame(into, "unrelated"); /* so that ids differ */
	from_view = tables_view_of(&from);
	tables_copy_begin(&copy, into, &from_view);
	for (uint32_t i = 0; i < from_view.reports_count; i++)
		assert_true(tables_copy_report(&copy, i));
	tables_copy_end(&copy);

	into_view = tables_view_of(into);
	before = describe(&from_view);
	after = describe(&into_view);
	assert_string_equal(before, after);
	assert_non_null(strstr(after, "on_cpu{comm=cc1} at 1000:\nmain;parse;lex 1 2 labels=1\n"));
	free(before);
	free(after);
	tables_free(&from);
}

static void deep_stacks_are_copied_without_recursion(void **state)
{
	struct tables *into = *state;
	struct tables_view view;
	struct tables_copy copy;
	struct tables from;
	uint32_t node = 0;

	tables_init(&from);
	for (uint32_t depth = 0; depth < 200000; depth++)
		node = tables_node(&from, node, frame(&from, depth % 2 ? "even" : "odd"));
	view = tables_view_of(&from);
	tables_copy_begin(&copy, into, &view);
	assert_int_equal(tables_copy_node(&copy, node), 200000);
	assert_int_equal(tables_copy_node(&copy, 0), 0);
	tables_copy_end(&copy);
	tables_free(&from);
}

static void frame_kinds_have_names_both_ways(void **state)
{
	(void)state;
	for (int kind = 0; kind < FRAME_KINDS; kind++) {
		const char *name = frame_kind_name((enum frame_kind)kind);

		assert_int_equal(frame_kind_of(slice_of(name)), kind);
	}
	assert_int_equal(frame_kind_of(SLICE_LITERAL("cobol")), FRAME_UNKNOWN);
	assert_string_equal(frame_kind_name(FRAME_KINDS), "unknown");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static struct trace_link link_of(uint8_t byte)
{
	struct trace_link link;

	memset(&link, byte, sizeof(link));
	return link;
}

/* One report with two rows: the first with two moments, the second with one. */
static void fill_moments(struct tables *tables)
{
	const struct trace_link links[] = { link_of(7), link_of(9) };

	tables_report_begin(tables, series(tables, "api", 1), 1000, 10, 1);
	tables_row(tables, stack(tables, "main;a"), 0, &(int64_t){ 2 });
	tables_row(tables, stack(tables, "main;b"), 0, &(int64_t){ 1 });
	assert_true(tables_moments(
		tables,
		(struct moment[]){ { 0, 3, tables_link(tables, &links[0]) },
				   { 0, 5, 0 },
				   { 1, UINT32_MAX, tables_link(tables, &links[1]) } },
		3));
}

static void moments_belong_to_rows_and_are_copied(void **state)
{
	struct tables *tables = *state;
	const struct trace_link first = link_of(7), second = link_of(9), none = { 0 };
	struct tables_copy copy;
	struct tables_view view;
	struct tables other;

	fill_moments(tables);
	view = tables_view_of(tables);
	assert_int_equal(tables_link(tables, &none), 0);
	tables_init(&other);
	tables_link(&other, &second); /* so that ids differ */
	tables_copy_begin(&copy, &other, &view);
	assert_true(tables_copy_report(&copy, 0));
	tables_copy_end(&copy);
	view = tables_view_of(&other);
	assert_int_equal(view.reports[0].moment_count, 3);
	assert_int_equal(view.moments_count, 3);
	assert_int_equal(view.moments[0].row, 0);
	assert_int_equal(view.moments[0].tick, 3);
	assert_memory_equal(&view.links[view.moments[0].link], &first, sizeof(first));
	assert_int_equal(view.moments[1].tick, 5);
	assert_int_equal(view.moments[1].link, 0);
	assert_int_equal(view.moments[2].row, 1);
	assert_int_equal(view.moments[2].tick, UINT32_MAX);
	assert_memory_equal(&view.links[view.moments[2].link], &second, sizeof(second));
	assert_int_equal(view.links_count, 3);
	tables_report_cancel(&other);
	assert_int_equal(tables_view_of(&other).moments_count, 0);
	tables_free(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(id_zero_is_the_empty_thing),
		TEST(things_are_kept_once),
		TEST(strings_may_hold_any_bytes),
		TEST(frames_differ_by_what_they_are),
		TEST(what_producers_write_besides_makes_no_other_frame),
		TEST(parents_come_before_their_children),
		TEST(label_sets_are_sorted_and_without_doubles),
		TEST(numbers_and_units_tell_labels_apart),
		TEST(full_is_passed_on),
		TEST(many_fit_into_the_address_space),
		TEST(reports_keep_totals_per_column),
		TEST(totals_saturate),
		TEST(a_cancelled_report_leaves_nothing),
		TEST(a_view_outlives_later_additions),
		TEST(readers_need_no_lock_below_their_view),
		TEST(reset_makes_them_as_new),
		TEST(copies_say_the_same_under_other_ids),
		TEST(deep_stacks_are_copied_without_recursion),
		TEST(moments_belong_to_rows_and_are_copied),
		TEST(frame_kinds_have_names_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
