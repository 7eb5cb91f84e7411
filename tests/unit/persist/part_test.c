/* SPDX-License-Identifier: Apache-2.0 */
/* Parts: what is written is read again, whatever it is; and bytes that were damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "batches.h"
#include "lines.h"
#include "server/persist/part/part_arrange.h"
#include "server/persist/part/part_chunk.h"
#include "server/persist/part/decode/part_reader.h"
#include "sim_disk.h"

#define DIR "/parts"
#define NUMBER 7
#define PATH DIR "/part-000007.firn"
#define ROUNDS 60
#define OTHER_READER_ROUNDS 6
#define OTHER_READER_ROWS_MAX 3000

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

static struct trace_link random_link(struct fixture *f)
{
	struct trace_link link;

	memset(&link, (int)below(f, 20), sizeof(link));
	return link;
}

/* Of every third row or so, with none, one or several links. */
static void random_moments(struct fixture *f, uint32_t rows)
{
	struct moment *moments = mem_new_array(struct moment, (size_t)rows * 2);
	uint32_t count = 0, links = below(f, 3);

	for (uint32_t row = 0; row < rows; row++)
		for (uint32_t tick = below(f, 500); tick < 400 && count < rows * 2;
		     tick += 1 + below(f, 20000)) {
			struct trace_link link = random_link(f);

			moments[count++] = (struct moment){ row, below(f, 9) ? tick : UINT32_MAX,
							    links && below(f, 2)
								    ? tables_link(&f->tables, &link)
								    : 0 };
			if (moments[count - 1].tick == UINT32_MAX)
				break;
		}
	assert_true(tables_moments(&f->tables, moments, count));
	free(moments);
}

static void random_report(struct fixture *f, uint32_t series, uint32_t rows_max, bool with_labels,
			  bool with_moments, const uint32_t *kinds)
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
			values[j] = j && kinds[j] == 2 && kinds[0] != 4 && values[0] > 0 &&
						    values[0] < 1000
					    ? values[0] * 19
					    : random_value(f, kinds[j]);
		tables_row(&f->tables, stack,
			   with_labels && below(f, 2) ? random_row_label_set(f) : 0, values);
	}
	if (with_moments && rows < 1000)
		random_moments(f, rows);
}

/* Small and large, uniform and wild ones. */
static void fill(struct fixture *f)
{
	uint32_t series_count = 1 + below(f, 12), reports = 1 + below(f, below(f, 4) ? 60 : 1500);
	uint32_t rows_max = below(f, 5) ? 1 + below(f, 30) : below(f, 4) ? 0 : 20000;
	bool with_labels = below(f, 2), with_moments = !below(f, 3);
	uint32_t series[12], kinds[16];

	tables_reset(&f->tables);
	for (uint32_t i = 0; i < 16; i++)
		kinds[i] = below(f, 5);
	for (uint32_t i = 0; i < series_count; i++)
		series[i] = random_series(f);
	if (rows_max > 1000 && reports > 6)
		reports = 6;
	for (uint32_t i = 0; i < reports; i++)
		random_report(f, series[below(f, series_count)], rows_max, with_labels,
			      with_moments, kinds);
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
	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];
		uint32_t columns = tables_series_columns(view, report->series);
		uint64_t values = (uint64_t)report->row_count * columns;
		__int128 sum = 0;

		for (uint64_t j = 0; j < values; j++) {
			int64_t value = view->values[report->value_first + j];

			sum += value < 0 ? -(__int128)value : value;
		}
		if (sum > INT64_MAX)
			return true;
	}
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
			lines_assert_equal(&want, &got);
			compared++;
		}
		part_reader_close(reader);
	}
	assert_in_range(compared, ROUNDS / 2, ROUNDS);
}

/* Another reader. */

static bool read_file(const char *path, struct strbuf *out)
{
	return !vfs_read_whole(&vfs_posix, path, (uint64_t)1 << 30, out, NULL);
}

static const char *tests_dir(void)
{
	return getenv("FIRN_TESTS") ? getenv("FIRN_TESTS") : "tests";
}

static bool read_lines(const char *path, struct lines *lines)
{
	struct strbuf text = { 0 };
	bool found = read_file(path, &text);
	struct slice rest = strbuf_slice(&text);

	while (rest.len) {
		struct slice line = slice_cut(rest, '\n', &rest);

		mem_grow(lines->items, lines->count, lines->capacity);
		lines->items[lines->count++] = mem_strndup(line.data, line.len);
	}
	strbuf_free(&text);
	return found;
}

/* The lines that tests/part_reader.py finds in the part. */
static bool ask_other_reader(const char *dir, struct lines *lines)
{
	char command[1024], path[512];
	bool ran;

	snprintf(path, sizeof(path), "%s/lines", dir);
	snprintf(command, sizeof(command), "%s/part_reader.py %s/part-000007.firn > %s",
		 tests_dir(), dir, path);
	ran = system(command) == 0 && read_lines(path, lines);
	unlink(path);
	return ran;
}

static void another_reader_finds_the_same(void **state)
{
	struct fixture *f = *state;
	char dir[] = "/tmp/firn-part-test-XXXXXX", path[256];
	const char *keep = getenv("FIRN_TEST_KEEP_PART"); /* the part of which round */
	uint64_t rounds = keep ? strtoull(keep, NULL, 10) : OTHER_READER_ROUNDS;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/part-000007.firn", dir);
	for (uint64_t round = 1; round <= rounds; round++) {
		struct lines want = { 0 }, got = { 0 };
		struct tables_view view;
		struct err err = { 0 };

		f->random = round * 0xc2b2ae3d27d4eb4full;
		do
			fill(f);
		while (has_overflow((view = tables_view_of(&f->tables), &view)) ||
		       view.rows_count > OTHER_READER_ROWS_MAX);
		if (part_write(&vfs_posix, dir, &view, NUMBER, &f->info, &err))
			fail_msg("write: %s", err.message);
		lines_add_tables(&want, &view);
		if (!ask_other_reader(dir, &got))
			fail_msg("round %llu: tests/part_reader.py failed",
				 (unsigned long long)round);
		lines_assert_equal(&want, &got);
	}
	if (!keep) { /* else: to be a golden file (tests/golden/part) */
		unlink(path);
		rmdir(dir);
	}
}

/* A part in a folder of tests/golden/part has what `lines` says, and is whole. */
static void assert_golden(struct fixture *f, const char *folder)
{
	struct lines want = { 0 }, got = { 0 };
	struct strbuf bytes = { 0 };
	struct part_reader *reader;
	struct err err = { 0 };
	char dir[512], path[600];

	snprintf(dir, sizeof(dir), "%s/golden/part%s", tests_dir(), folder);
	snprintf(path, sizeof(path), "%s/part-000007.firn", dir);
	assert_true(read_file(path, &bytes));
	f->info = (struct part_info){ .number = NUMBER, .bytes = bytes.len };
	memcpy(&f->info.hash, bytes.data + bytes.len - 32, sizeof(f->info.hash));
	strbuf_free(&bytes);
	if (part_reader_open(&vfs_posix, dir, &f->info, &reader, &err))
		fail_msg("open: %s", err.message);
	if (part_reader_verify(reader, &err))
		fail_msg("verify: %s", err.message);
	add_part(&got, reader, SEGMENT_RAW);
	part_reader_close(reader);
	snprintf(path, sizeof(path), "%s/golden/part/lines", tests_dir());
	assert_true(read_lines(path, &want));
	lines_assert_equal(&want, &got);
}

static void parts_of_version_3_stay_readable(void **state)
{
	assert_golden(*state, "");
}

static void parts_of_version_4_stay_readable(void **state)
{
	assert_golden(*state, "/version-4");
}

/* Damage. */

static bool is_good(struct fixture *f)
{
	struct part_reader *reader;
	bool good;

	if (part_reader_open(f->vfs, DIR, &f->info, &reader, NULL))
		return false;
	good = !part_reader_verify(reader, NULL);
	part_reader_close(reader);
	return good;
}

static void any_changed_byte_is_noticed(void **state)
{
	struct fixture *f = *state;

	for (uint32_t n = 0; n < 12; n++)
		batches_add(&f->tables, n);
	write_part(f);
	assert_true(is_good(f));
	for (uint64_t i = 0; i < f->info.bytes; i++) {
		assert_true(sim_disk_flip(f->disk, PATH, i, 0x10));
		if (is_good(f))
			fail_msg("byte %llu was changed unnoticed", (unsigned long long)i);
		assert_true(sim_disk_flip(f->disk, PATH, i, 0x10));
	}
	assert_true(is_good(f));
	f->info.hash.low ^= 1;
	assert_false(is_good(f));
}

static void a_damaged_block_spoils_no_other_part(void **state)
{
	struct fixture *f = *state;
	struct segment_buffer buffer = { 0 };
	struct part_reader *reader;
	struct segment_block block;
	struct segment segment;
	struct err err = { 0 };

	for (uint32_t n = 0; n < 12; n++)
		batches_add(&f->tables, n);
	write_part(f);
	reader = open_part(f);
	assert_int_equal(
		part_reader_segment(reader, 0, SEGMENT_RAW, INT64_MIN, INT64_MAX, &segment, &err),
		0);
	assert_int_equal(segment_read(&segment, 0, SEGMENT_HEADERS, &buffer, &block, &err), 0);
	assert_false(part_reader_is_damaged(reader, &err));
	/* The stripe is the first thing in the file: headers, then rows. */
	for (uint64_t i = 24; i < 300; i++)
		sim_disk_flip(f->disk, PATH, i, 0x01);
	segment_buffer_free(&buffer);
	assert_int_equal(segment_read(&segment, 0, SEGMENT_ROWS, &buffer, &block, &err),
			 -ERR_CORRUPT);
	assert_true(part_reader_is_damaged(reader, &err));
	assert_non_null(strstr(err.message, "part-000007.firn"));
	part_reader_drop_segment(&segment);
	part_reader_close(reader);
	segment_buffer_free(&buffer);
}

static void other_versions_are_refused_with_what_to_do(void **state)
{
	struct fixture *f = *state;
	struct part_reader *reader;
	struct err err = { 0 };

	batches_add(&f->tables, 1);
	write_part(f);
	sim_disk_flip(f->disk, PATH, 8, PART_VERSION ^ 2);
	assert_int_equal(part_reader_open(f->vfs, DIR, &f->info, &reader, &err), -ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "empty storage directory"));
	sim_disk_flip(f->disk, PATH, 8, 2 ^ (PART_VERSION + 1));
	assert_int_equal(part_reader_open(f->vfs, DIR, &f->info, &reader, &err), -ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "newer firn"));
}

/* Levels. */

/* Sums of everything per hour, as an order to the writer. */
static void write_levels(struct fixture *f, const struct tables_view *view, uint64_t *rows_of_node)
{
	const struct part_dictionary dictionary = { .key = { SLICE_LITERAL(""),
							     SLICE_LITERAL("x") },
						    .view = view,
						    .rows_of_node = rows_of_node };
	const int64_t values[] = { 5, 7 };
	const uint32_t nodes[] = { 2, 1 };
	struct part_report report = { .row_count = 2,
				      .start_ns = 100,
				      .duration_ns = 10,
				      .end_ns = 110,
				      .reports_count = 1,
				      .nodes = nodes,
				      .values = values };
	struct part_writer *writer;
	struct err err = { 0 };

	assert_int_equal(part_writer_open(f->vfs, DIR, NUMBER, PART_THOROUGH, NULL, &writer, &err),
			 0);
	assert_int_equal(part_writer_begin_partition(writer, &dictionary, &err), 0);
	for (int i = 0; i < 3; i++, report.start_ns += 20, report.end_ns += 20)
		assert_int_equal(part_writer_report(writer, SEGMENT_RAW, &report, &err), 0);
	report.start_ns = 100;
	report.duration_ns = 30;
	report.end_ns = 150;
	report.reports_count = 3;
	assert_int_equal(part_writer_report(writer, SEGMENT_HOUR_SERIES, &report, &err), 0);
	assert_int_equal(part_writer_report(writer, SEGMENT_DAY_ALL, &report, &err), 0);
	assert_int_equal(part_writer_end_partition(writer, &err), 0);
	assert_int_equal(part_writer_commit(writer, &f->info, &err), 0);
}

static void levels_are_kept_apart(void **state)
{
	struct fixture *f = *state;
	static const char *const deep[] = { "main", "work" };
	const enum column_kind kind = COLUMN_DELTA;
	uint64_t rows_of_node[] = { 0, 3, 3 };
	struct segment_buffer buffer = { 0 };
	struct part_reader *reader;
	struct tables_view view;

	batches_series(&f->tables, "x", &kind, 1);
	batches_stack(&f->tables, deep, 2);
	view = tables_view_of(&f->tables);
	write_levels(f, &view, rows_of_node);
	assert_int_equal(f->info.reports, 3);
	assert_int_equal(f->info.rows, 6);
	assert_true(f->info.bytes_rollups > 0);
	reader = open_part(f);
	assert_int_equal(part_reader_partition(reader, 0)->levels,
			 1 << SEGMENT_RAW | 1 << SEGMENT_HOUR_SERIES | 1 << SEGMENT_DAY_ALL);
	for (int level = 0; level < SEGMENT_LEVELS; level++) {
		struct segment segment;
		struct segment_block block;

		assert_int_equal(part_reader_segment(reader, 0, (enum segment_level)level, 0, 1000,
						     &segment, NULL),
				 0);
		assert_int_equal(segment.blocks_count, level == SEGMENT_RAW ||
							       level == SEGMENT_HOUR_SERIES ||
							       level == SEGMENT_DAY_ALL);
		if (segment.blocks_count) {
			assert_int_equal(
				segment_read(&segment, 0, SEGMENT_ROWS, &buffer, &block, NULL), 0);
			assert_int_equal(block.reports_count, level == SEGMENT_RAW ? 3 : 1);
			assert_int_equal(block.reports[0].reports_count,
					 level == SEGMENT_RAW ? 1 : 3);
			assert_int_equal(block.reports[0].end_ns, level == SEGMENT_RAW ? 110 : 150);
			assert_int_equal(block.totals[block.reports[0].total_first], 12);
		}
		part_reader_drop_segment(&segment);
	}
	assert_int_equal(part_reader_verify(reader, NULL), 0);
	part_reader_close(reader);
	segment_buffer_free(&buffer);
}

/* Memory. */

static void blocks_are_read_without_new_memory(void **state)
{
	struct fixture *f = *state;
	struct segment_buffer buffer = { 0 };
	struct segment_block first, again;
	struct part_reader *reader;
	struct segment segment;
	size_t before;

	for (uint32_t n = 0; n < 60; n++)
		batches_add(&f->tables, n);
	write_part(f);
	reader = open_part(f);
	before = part_reader_bytes(reader);
	assert_int_equal(part_reader_segment(reader, 1, SEGMENT_RAW, 0, INT64_MAX, &segment, NULL),
			 0);
	assert_int_equal(segment_load_stacks(&segment, NULL), 0);
	assert_true(part_reader_bytes(reader) > before);
	part_reader_trim(reader); /* in use: stays */
	assert_int_equal(segment_read(&segment, 0, SEGMENT_ROWS, &buffer, &first, NULL), 0);
	assert_int_equal(segment_read(&segment, 0, SEGMENT_HEADERS, &buffer, &again, NULL), 0);
	assert_null(again.slots);
	assert_int_equal(segment_read(&segment, 0, SEGMENT_ROWS, &buffer, &again, NULL), 0);
	assert_ptr_equal(first.reports, again.reports);
	assert_ptr_equal(first.slots, again.slots);
	part_reader_drop_segment(&segment);
	part_reader_trim(reader);
	assert_int_equal(part_reader_bytes(reader), before);
	part_reader_close(reader);
	segment_buffer_free(&buffer);
}

/* Reports of one row that tell the time of each of their samples. */
static void moments_bound_what_is_read_at_once(void **state)
{
	const uint32_t each = 150000, reports = 4;
	struct fixture *f = *state;
	struct moment *moments = mem_new_array(struct moment, each);
	struct segment_buffer buffer = { 0 };
	struct part_reader *reader;
	struct segment segment;
	uint64_t found = 0;
	uint32_t series;

	series = random_series(f);
	for (uint32_t i = 0; i < each; i++)
		moments[i].tick = i;
	for (uint32_t i = 0; i < reports; i++) {
		const int64_t values[16] = { each };

		tables_report_begin(&f->tables, series, 1700000000 + i, 0, i);
		tables_row(&f->tables, random_stack(f), 0, values);
		assert_true(tables_moments(&f->tables, moments, each));
	}
	write_part(f);
	reader = open_part(f);
	assert_int_equal(part_reader_segment(reader, 0, SEGMENT_RAW, 0, INT64_MAX, &segment, NULL),
			 0);
	assert_int_equal(segment.blocks_count, reports);
	for (uint32_t i = 0; i < segment.blocks_count; i++) {
		struct segment_block block;

		assert_int_equal(segment_read(&segment, i, SEGMENT_MOMENTS, &buffer, &block, NULL),
				 0);
		for (uint32_t r = 0; r < block.reports_count; r++)
			found += block.reports[r].moment_count;
	}
	assert_int_equal(found, reports * each);
	part_reader_drop_segment(&segment);
	part_reader_close(reader);
	segment_buffer_free(&buffer);
	free(moments);
}

/* Keys. */

static void partitions_that_cannot_match_are_left_out(void **state)
{
	static const struct {
		const char *service, *label, *selector;
		bool may;
	} cases[] = {
		{ "shop", "comm", "{comm=\"shop\"}", true },
		{ "shop", "comm", "{comm=\"other\"}", false },
		{ "shop", "comm", "{comm=~\"sh.*\"}", true },
		{ "shop", "comm", "{service_name=\"shop\"}", true },
		{ "shop", "comm", "{service_name=\"other\"}", true }, /* job="other" is one, too */
		{ "shop", "comm", "{pod=\"x\"}", true },
		{ "shop", "service_name", "{comm=\"other\"}", true },
		{ "shop", "service_name", "{service_name!=\"shop\"}", false },
		{ "shop", "service_name", "{service_name=\"shop\"}", true },
		{ "unknown_service:java", "service_name", "{service_name=\"other\"}", true },
		{ "shop", "", "{comm=\"other\"}", true }, /* some series may be called otherwise */
		{ "shop", "", "{service_name=\"other\"}", true },
		{ "shop", "", "{service_name=\"shop\"}", true },
		{ "", "", "{comm=\"x\"}", false },
		{ "", "", "{comm=\"\"}", true },
		{ "shop", "comm", "{__tenant__=\"a\"}", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct part_key key = { SLICE_LITERAL(""), slice_of(cases[i].service) };
		struct selector selector;

		assert_int_equal(selector_parse(slice_of(cases[i].selector), &selector, NULL), 0);
		if (part_key_may_match(&key, slice_of(cases[i].label), NULL, 0, &selector) !=
		    cases[i].may)
			fail_msg("case %zu", i);
		selector_free(&selector);
	}
}

#define SERVICES 400u

/* Of two tenants, called by two labels; rows of every fiftieth carry a label of one of the names.
 */
static void add_services(struct fixture *f)
{
	struct tables *tables = &f->tables;
	struct column column = { tables_string(tables, SLICE_LITERAL("samples")), 0, COLUMN_DELTA };
	struct group group = { .name = tables_string(tables, SLICE_LITERAL("on_cpu")),
			       .column_count = 1 };
	uint32_t type = tables_group(tables, &group, &column);

	for (uint32_t i = 0; i < SERVICES; i++) {
		struct label labels[] = {
			{ .name = tables_string(tables, slice_of(i % 3 ? "comm" : "service_name")),
			  .value = string(f, i % 3 ? "c" : "s", 1000000) },
			{ .name = tables_string(tables, SLICE_LITERAL("__tenant__")),
			  .value = string(f, "tenant", 2) },
		};
		struct label carried = { .name = tables_string(tables, SLICE_LITERAL("comm")),
					 .value = labels[0].value };
		const int64_t one = 1;

		tables_report_begin(
			tables, tables_series(tables, tables_label_set(tables, labels, 2), type),
			1700000000, 0, i);
		tables_row(tables, random_stack(f),
			   i % 50 ? 0 : tables_label_set(tables, &carried, 1), &one);
	}
}

static bool may_match(const struct part_reader *reader, uint32_t number,
		      const struct selector *selector)
{
	const struct part_partition *partition = part_reader_partition(reader, number);

	return part_key_may_match(&partition->key, partition->service_label,
				  partition->sample_label_names,
				  partition->sample_label_names_count, selector);
}

/* Leaves out no partition that a look at each would find. Returns how many are to be looked at. */
static uint32_t find_all(const struct part_reader *reader, const char *text)
{
	uint32_t count = part_reader_partitions(reader), looked_at = 0, at = 0;
	struct selector selector;

	assert_int_equal(selector_parse(slice_of(text), &selector, NULL), 0);
	for (uint32_t i = part_reader_next(reader, 0, &selector); i < count;
	     i = part_reader_next(reader, i + 1, &selector)) {
		for (; at < i; at++)
			if (may_match(reader, at, &selector))
				fail_msg("%s: partition %u was left out", text, at);
		at = i + 1;
		looked_at++;
	}
	for (; at < count; at++)
		if (may_match(reader, at, &selector))
			fail_msg("%s: partition %u was left out", text, at);
	selector_free(&selector);
	return looked_at;
}

static void one_of_many_services_is_found_without_a_look_at_each(void **state)
{
	struct fixture *f = *state;
	struct part_reader *reader;
	uint32_t count, others = 0;

	add_services(f);
	write_part(f);
	reader = open_part(f);
	count = part_reader_partitions(reader);
	assert_in_range(count, SERVICES / 2, SERVICES);
	for (uint32_t i = 0; i < count; i++)
		others += !slice_is(part_reader_partition(reader, i)->service_label, "comm");
	assert_in_range(others, count / 4, count / 2);
	for (uint32_t i = 0; i < count; i++) {
		struct slice service = part_reader_partition(reader, i)->key.service;
		struct strbuf text = { 0 };

		strbuf_addf(&text, "{comm=\"%.*s\"}", (int)service.len, service.data);
		assert_in_range(find_all(reader, strbuf_text(&text)), others, others + 60);
		strbuf_clear(&text);
		strbuf_addf(&text, "{service_name=\"%.*s\"}", (int)service.len, service.data);
		find_all(reader, strbuf_text(&text));
		strbuf_free(&text);
	}
	assert_int_equal(find_all(reader, "{pod=\"a\"}"), count);
	assert_int_equal(find_all(reader, "{comm!=\"a\"}"), count);
	assert_int_equal(find_all(reader, "{comm=\"\"}"), count);
	part_reader_close(reader);
}

static size_t packed_bytes(ZSTD_CCtx *encoder, const struct strbuf *raw, int level)
{
	struct part_chunk_builder builder = { 0 };
	struct part_chunk chunk;
	struct slice stored;
	ZSTD_DCtx *decoder = ZSTD_createDCtx();
	char *back = mem_new_array(char, raw->len);

	strbuf_add(&builder.raw, raw->data, raw->len);
	assert_int_equal(part_chunk_pack(&builder, encoder, level, NULL, &chunk, &stored, NULL), 0);
	assert_int_equal(part_chunk_unpack(&chunk, decoder, stored.data, back, NULL), 0);
	assert_memory_equal(back, raw->data, raw->len);
	part_chunk_builder_free(&builder);
	ZSTD_freeDCtx(decoder);
	free(back);
	return chunk.stored;
}

/* Work that gains nothing is not done; and what it takes of memory does not grow with a section. */
static void thorough_packing_is_for_what_gains_by_it(void **state)
{
	enum { QUICK = 3, THOROUGH = 19, MEMORY_BYTES = 16 << 20 };
	struct strbuf random = { 0 }, similar = { 0 };
	ZSTD_CCtx *encoder = ZSTD_createCCtx();
	struct fixture *f = *state;

	while (random.len < (size_t)3 << 20) {
		strbuf_addf(&random, "%016llx", (unsigned long long)next(f));
		strbuf_addf(&similar, "package_%llu.method_%llu;", (unsigned long long)next(f) % 97,
			    (unsigned long long)next(f) % 4001);
	}
	assert_int_equal(packed_bytes(encoder, &random, THOROUGH),
			 packed_bytes(encoder, &random, QUICK));
	assert_true(packed_bytes(encoder, &similar, THOROUGH) <
		    packed_bytes(encoder, &similar, QUICK) / 100 * 95);
	assert_true(ZSTD_sizeof_CCtx(encoder) < MEMORY_BYTES);
	ZSTD_freeCCtx(encoder);
	strbuf_free(&random);
	strbuf_free(&similar);
}

/* Rows like dice are not larger without matches; those that repeat from report to report have them.
 */
static void rows_are_packed_with_matches_where_they_repeat(void **state)
{
	enum { QUICK = 3, REPORTS = 20, ROWS = 3000 };
	struct strbuf dice = { 0 }, repeated = { 0 };
	ZSTD_CCtx *encoder = ZSTD_createCCtx();
	struct fixture *f = *state;

	for (size_t i = 0; i < (size_t)REPORTS * ROWS; i++) {
		uint64_t bits = next(f) | 1ull << 20;

		strbuf_add_byte(&dice, (char)__builtin_ctzll(bits));
		strbuf_add_byte(&repeated,
				i < ROWS ? dice.data[i] : repeated.data[repeated.len - ROWS]);
	}
	assert_true(packed_bytes(encoder, &dice, PART_CHUNK_ROWS) <=
		    packed_bytes(encoder, &dice, QUICK));
	assert_true(packed_bytes(encoder, &repeated, PART_CHUNK_ROWS) * 100 <=
		    packed_bytes(encoder, &repeated, QUICK) * 101);
	assert_true(packed_bytes(encoder, &repeated, PART_CHUNK_ROWS) <
		    packed_bytes(encoder, &dice, PART_CHUNK_ROWS) / 5);
	ZSTD_freeCCtx(encoder);
	strbuf_free(&dice);
	strbuf_free(&repeated);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whatever_is_written_is_read_again, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(another_reader_finds_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(parts_of_version_3_stay_readable, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(parts_of_version_4_stay_readable, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(any_changed_byte_is_noticed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_damaged_block_spoils_no_other_part, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(other_versions_are_refused_with_what_to_do, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(levels_are_kept_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(blocks_are_read_without_new_memory, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(moments_bound_what_is_read_at_once, set_up,
						tear_down),
		cmocka_unit_test(partitions_that_cannot_match_are_left_out),
		cmocka_unit_test_setup_teardown(thorough_packing_is_for_what_gains_by_it, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(rows_are_packed_with_matches_where_they_repeat,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			one_of_many_services_is_found_without_a_look_at_each, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
