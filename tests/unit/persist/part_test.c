/* SPDX-License-Identifier: Apache-2.0 */
/* Parts: what is written is read again, whatever it is; and bytes that were damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "batches.h"
#include "lines.h"
#include "server/persist/part_arrange.h"
#include "server/persist/part_reader.h"
#include "sim_disk.h"

#define DIR "/parts"
#define NUMBER 7
#define ROUNDS 60

struct fixture {
	struct sim_disk *disk;
	const struct vfs *vfs;
	uint64_t random;
	struct tables tables;
	struct part_info info;
};

static int set_up(void **state)
{
	struct fixture *f = mem_new(struct fixture);

	f->disk = sim_disk_new(1);
	f->vfs = sim_disk_vfs(f->disk);
	f->random = 1;
	assert_int_equal(f->vfs->mkdir(f->vfs, DIR), 0);
	tables_init(&f->tables);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	tables_free(&f->tables);
	sim_disk_free(f->disk);
	free(f);
	return 0;
}

static uint64_t next(struct fixture *f)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return f->random;
}

static uint32_t below(struct fixture *f, uint32_t limit)
{
	return (uint32_t)(next(f) >> 20) % limit;
}

static uint32_t string(struct fixture *f, const char *prefix, uint32_t kinds)
{
	char text[64];
	uint32_t number = below(f, kinds + 1);

	if (!number)
		return 0;
	snprintf(text, sizeof(text), "%s%u", prefix, number * 77);
	return tables_string(&f->tables, slice_of(text));
}

static uint32_t random_frame(struct fixture *f)
{
	bool native = below(f, 2);
	struct frame frame = {
		.kind = native ? FRAME_NATIVE : FRAME_PYTHON,
		.flags = below(f, 3) ? 0 : FRAME_ADDR_OFFSET,
		.address = native ? next(f) >> below(f, 60) : 0,
		.mapping_file = string(f, "/usr/lib/lib", 3),
		.build_id = string(f, "abcdef", 3),
		.function = string(f, "function_", 20),
		.system_name = string(f, "_Z", 2),
		.file = string(f, "src/file", 5),
		.line = below(f, 2) ? below(f, 500) : (uint32_t)next(f),
		.column = below(f, 3),
		.start_line = below(f, 100),
	};

	return tables_frame(&f->tables, &frame);
}

static uint32_t random_stack(struct fixture *f)
{
	uint32_t nodes = (uint32_t)f->tables.nodes.count;
	uint32_t node = below(f, 3) ? below(f, nodes) : 0;

	if (nodes > 2000)
		return node;
	for (uint32_t depth = below(f, 6); depth; depth--)
		node = tables_node(&f->tables, node, random_frame(f));
	return node;
}

static int64_t random_value(struct fixture *f, uint32_t kind)
{
	switch (kind) {
	case 0:
		return 1;
	case 1:
		return below(f, 8) ? 1 : 1 + below(f, 5);
	case 2:
		return (int64_t)(1 + below(f, 20)) * 10000000;
	case 3:
		return (int64_t)next(f) >> below(f, 63);
	default:
		return below(f, 2) ? INT64_MAX : INT64_MIN;
	}
}

static uint32_t random_label_set(struct fixture *f, const char *const *names, uint32_t count)
{
	struct label labels[8];
	uint32_t made = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (below(f, 4) == 0)
			continue;
		labels[made++] = (struct label){
			.name = tables_string(&f->tables, slice_of(names[i])),
			.value = string(f, i % 2 ? "pod-a-" : "x", 4),
		};
	}
	return tables_label_set(&f->tables, labels, made);
}

static uint32_t random_row_label_set(struct fixture *f)
{
	struct label label = {
		.name = string(f, "name", 2),
		.unit = string(f, "unit", 1),
		.numeric = 1,
		.number = (int64_t)next(f) >> below(f, 60),
	};
	static const char *const names[] = { "request", "thread" };

	if (below(f, 2))
		return random_label_set(f, names, 2);
	if (below(f, 3) == 0) /* one that a series has too, perhaps */
		return below(f, (uint32_t)f->tables.label_sets.count);
	return tables_label_set(&f->tables, &label, 1);
}

static uint32_t random_series(struct fixture *f)
{
	static const char *const names[] = { "__tenant__", "comm", "pod", "service_name", "zone" };
	uint32_t count = below(f, 3) ? 1 : 1 + below(f, 4);
	struct group group = { .name = string(f, "type", 3),
			       .period_type = string(f, "x", 2),
			       .period = (int64_t)next(f) >> below(f, 60),
			       .column_count = count };
	struct column columns[4];

	if (below(f, 3))
		group.period = 52631578;
	for (uint32_t i = 0; i < count; i++)
		columns[i] = (struct column){ string(f, "samples", 3), string(f, "x", 2),
					      below(f, 2) ? COLUMN_DELTA : COLUMN_GAUGE };
	return tables_series(&f->tables, random_label_set(f, names, 5),
			     tables_group(&f->tables, &group, columns));
}

static void random_report(struct fixture *f, uint32_t series, uint32_t rows_max, bool with_labels,
			  const uint32_t *kinds)
{
	struct tables_view view = tables_view_of(&f->tables);
	uint32_t columns = tables_series_columns(&view, series), rows = below(f, rows_max + 1);
	int64_t start_ns = below(f, 10) ? (int64_t)(1700000000 + 10 * below(f, 100)) * 1000000000
					: (int64_t)next(f) >> below(f, 60);

	tables_report_begin(&f->tables, series, start_ns,
			    below(f, 3) ? 10000000000 : (int64_t)next(f) >> below(f, 63), next(f));
	for (uint32_t i = 0; i < rows; i++) {
		uint32_t stack = random_stack(f);
		int64_t values[16];

		for (uint32_t j = 0; j < columns; j++)
			values[j] = j && kinds[j] == 2 && kinds[0] != 4 && values[0] > 0 && values[0] < 1000
					    ? values[0] * 19
					    : random_value(f, kinds[j]);
		tables_row(&f->tables, stack,
			   with_labels && below(f, 2) ? random_row_label_set(f) : 0, values);
	}
}

/* Small and large, uniform and wild ones. */
static void fill(struct fixture *f)
{
	uint32_t series_count = 1 + below(f, 12), reports = 1 + below(f, below(f, 4) ? 60 : 1500);
	uint32_t rows_max = below(f, 5) ? 1 + below(f, 30) : below(f, 4) ? 0 : 20000;
	bool with_labels = below(f, 2);
	uint32_t series[12], kinds[16];

	tables_reset(&f->tables);
	for (uint32_t i = 0; i < 16; i++)
		kinds[i] = below(f, 5);
	for (uint32_t i = 0; i < series_count; i++)
		series[i] = random_series(f);
	if (rows_max > 1000 && reports > 6)
		reports = 6;
	for (uint32_t i = 0; i < reports; i++)
		random_report(f, series[below(f, series_count)], rows_max, with_labels, kinds);
}

static void write_part(struct fixture *f)
{
	struct tables_view view = tables_view_of(&f->tables);
	struct err err = { 0 };

	if (part_write(f->vfs, DIR, &view, NUMBER, &f->info, &err))
		fail_msg("write: %s", err.message);
}

static struct part_reader *open_part(struct fixture *f)
{
	struct part_reader *reader;
	struct err err = { 0 };

	if (part_reader_open(f->vfs, DIR, &f->info, &reader, &err))
		fail_msg("open: %s", err.message);
	return reader;
}

static void add_part(struct lines *lines, struct part_reader *reader, enum segment_level level)
{
	for (uint32_t i = 0; i < part_reader_partitions(reader); i++) {
		struct segment segment;
		struct err err = { 0 };

		if (part_reader_segment(reader, i, level, INT64_MIN, INT64_MAX, &segment, &err))
			fail_msg("segment: %s", err.message);
		lines_add(lines, &segment);
		part_reader_drop_segment(&segment);
	}
}

/* Totals of plain tables stop at the ends of int64 at each row, those of parts at the end. */
static bool has_overflow(const struct tables_view *view)
{
	for (uint64_t i = 0; i < view->totals_count; i++)
		if (view->totals[i] > INT64_MAX / 2 || view->totals[i] < INT64_MIN / 2)
			return true;
	return false;
}

static void whatever_is_written_is_read_again(void **state)
{
	struct fixture *f = *state;
	uint32_t compared = 0;

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		struct lines want = { 0 }, got = { 0 };
		struct part_reader *reader;
		struct tables_view view;
		struct err err = { 0 };

		f->random = round * 0x9e3779b97f4a7c15ull;
		fill(f);
		write_part(f);
		view = tables_view_of(&f->tables);
		assert_int_equal(f->info.reports, view.reports_count);
		assert_int_equal(f->info.rows, view.rows_count);
		reader = open_part(f);
		if (part_reader_verify(reader, &err))
			fail_msg("round %llu: verify: %s", (unsigned long long)round, err.message);
		if (!has_overflow(&view)) {
			lines_add_tables(&want, &view);
			add_part(&got, reader, SEGMENT_RAW);
			print_message("round %llu: %zu lines\n", (unsigned long long)round,
				      want.count);
			lines_assert_equal(&want, &got);
			compared++;
		}
		part_reader_close(reader);
	}
	assert_in_range(compared, ROUNDS / 2, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whatever_is_written_is_read_again, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
