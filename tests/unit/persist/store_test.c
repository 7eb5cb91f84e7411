/* SPDX-License-Identifier: Apache-2.0 */
/* What the store promises to its callers, on a simulated and on the real disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "batches.h"
#include "server/persist/store_int.h"
#include "sim_disk.h"

#define DIR "/store"
#define NOW_NS ((BATCHES_START_S + 100) * CLOCK_NS_PER_S)
#define HOUR_NS (3600 * CLOCK_NS_PER_S)

struct fixture {
	struct sim_disk *disk;
	struct store *store;
	struct store_options options;
	int64_t now_ns;
};

static void open_store(struct fixture *f)
{
	struct err err = { 0 };

	f->options.clock_context = &f->now_ns;
	if (store_open(&f->options, &f->store, &err))
		fail_msg("open: %s", err.message);
}

static void reopen(struct fixture *f)
{
	store_close(f->store);
	open_store(f);
}

static int set_up(void **state)
{
	struct fixture *f = mem_new(struct fixture);

	f->disk = sim_disk_new(42);
	f->now_ns = NOW_NS;
	f->options = (struct store_options){ .path = DIR,
					     .vfs = sim_disk_vfs(f->disk),
					     .clock = batches_clock,
					     .segment_bytes = 32 * 1024,
					     .no_background = true };
	open_store(f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	store_close(f->store);
	sim_disk_free(f->disk);
	free(f);
	return 0;
}

static struct append_result append(struct fixture *f, uint32_t n)
{
	struct append_result result = { 0 };
	struct err err = { 0 };

	if (batches_append(f->store, n, &result, &err))
		fail_msg("append: %s", err.message);
	return result;
}

static void seal(struct fixture *f)
{
	struct err err = { 0 };

	if (store_seal(f->store, &err))
		fail_msg("seal: %s", err.message);
}

static struct store_stat stat_of(struct fixture *f)
{
	struct store_stat stat;

	assert_int_equal(store_stat(f->store, &stat, NULL), 0);
	return stat;
}

static void repeated_report_counts_once_across_seal_and_restart(void **state)
{
	struct fixture *f = *state;
	uint32_t found[4];

	assert_int_equal(append(f, 0).reports_stored, 1);
	assert_int_equal(append(f, 0).reports_duplicate, 1);
	reopen(f);
	assert_int_equal(append(f, 0).reports_duplicate, 1);
	seal(f);
	assert_int_equal(append(f, 0).reports_duplicate, 1);
	reopen(f);
	assert_int_equal(append(f, 0).reports_duplicate, 1);
	seal(f); /* a generation without reports leaves no part */
	reopen(f);
	assert_int_equal(append(f, 0).reports_duplicate, 1);
	batches_find(f->store, found, 4);
	assert_int_equal(found[0], 1);
	assert_int_equal(stat_of(f).parts, 1);
	f->now_ns += STORE_DEDUPE_NS;
	assert_int_equal(append(f, 0).reports_stored, 1);
}

static void status_counts_series_again_when_there_are_more(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(stat_of(f).series, 0);
	append(f, 0);
	assert_int_equal(stat_of(f).series, 1);
	append(f, 1);
	assert_int_equal(stat_of(f).series, 2);
	append(f, BATCHES_SERIES); /* a further report of the first */
	seal(f);
	assert_int_equal(stat_of(f).series, 2);
	append(f, 1 + BATCHES_SERIES); /* now in a part and in a memtable */
	append(f, 2);
	assert_int_equal(stat_of(f).series, 3);
}

/* Who asks each second does not have a million series counted each second. */
static void status_that_counted_for_long_rests(void **state)
{
	const int64_t took_ns = 3600 * CLOCK_NS_PER_S;
	struct fixture *f = *state;

	append(f, 0);
	assert_int_equal(stat_of(f).series, 1);
	store_disk_of(f->store)->counted.took_ns = took_ns;
	append(f, 1);
	assert_int_equal(stat_of(f).series, 1);
	assert_int_equal(stat_of(f).reports, 2);
	store_disk_of(f->store)->counted.at_ns -= 19 * took_ns;
	assert_int_equal(stat_of(f).series, 1);
	store_disk_of(f->store)->counted.at_ns -= 2 * took_ns;
	assert_int_equal(stat_of(f).series, 2);
	assert_true(store_disk_of(f->store)->counted.took_ns < took_ns);
}

static uint64_t version_of(struct fixture *f, int64_t from_s, int64_t to_s)
{
	const struct store_query query = {
		.from_ns = (BATCHES_START_S + from_s) * CLOCK_NS_PER_S,
		.to_ns = (BATCHES_START_S + to_s) * CLOCK_NS_PER_S,
	};
	struct store_snapshot snapshot;
	uint64_t version;

	assert_int_equal(store_snapshot(f->store, &query, &snapshot, NULL), 0);
	version = snapshot.version;
	store_snapshot_release(f->store, &snapshot);
	return version;
}

static void snapshots_of_parts_alone_have_a_version(void **state)
{
	struct fixture *f = *state;
	uint64_t first, both;

	append(f, 0);
	assert_int_equal(version_of(f, 0, 10), 0);
	seal(f);
	first = version_of(f, 0, 10);
	assert_int_not_equal(first, 0);
	assert_int_equal(version_of(f, 0, 10), first);
	append(f, 20);
	assert_int_equal(version_of(f, 0, 10), first);
	assert_int_equal(version_of(f, 0, 30), 0);
	append(f, 1);
	assert_int_equal(version_of(f, 0, 10), 0);
	seal(f);
	both = version_of(f, 0, 10);
	assert_int_not_equal(both, 0);
	assert_int_not_equal(both, first);
}

static void late_and_future_reports_are_refused_one_by_one(void **state)
{
	struct fixture *f = *state;
	struct append_result result;

	f->options.retention_ns = HOUR_NS;
	reopen(f);
	f->now_ns = (BATCHES_START_S + 3600 + 5) * CLOCK_NS_PER_S;
	result = append(f, 3);
	assert_int_equal(result.reports_late, 1);
	assert_non_null(strstr(result.refused, "report 0"));
	assert_int_equal(append(f, 5).reports_stored, 1);
	assert_int_equal(append(f, 3600 + 5 + 600).reports_stored, 1);
	result = append(f, 3600 + 5 + 601);
	assert_int_equal(result.reports_future, 1);
	/* What was decided stays, whatever retention says after a restart. */
	f->options.retention_ns = 0;
	reopen(f);
	assert_int_equal(stat_of(f).reports, 2);
}

static int take(struct fixture *f, int64_t from_ns, int64_t to_ns, struct store_snapshot *ret)
{
	const struct store_query query = { .from_ns = from_ns, .to_ns = to_ns };

	return store_snapshot(f->store, &query, ret, NULL);
}

static void retention_drops_whole_parts_and_keeps_pinned_ones_readable(void **state)
{
	struct fixture *f = *state;
	struct segment_buffer buffer = { 0 };
	struct store_snapshot snapshot;
	struct segment_block block;

	append(f, 0);
	seal(f);
	append(f, 50);
	seal(f);
	f->options.retention_ns = HOUR_NS;
	reopen(f);
	assert_int_equal(take(f, 0, INT64_MAX, &snapshot), 0);
	assert_int_equal(snapshot.count, 2);
	f->now_ns = (BATCHES_START_S + 3600 + 10) * CLOCK_NS_PER_S;
	assert_int_equal(store_tick(f->store, NULL), 0);
	assert_int_equal(stat_of(f).parts, 1);
	assert_false(sim_disk_has(f->disk, DIR "/part-000001.firn", NULL));
	assert_int_equal(
		segment_read(&snapshot.segments[0], 0, SEGMENT_ROWS, &buffer, &block, NULL), 0);
	assert_int_equal(block.reports_count, 1);
	segment_buffer_free(&buffer);
	store_snapshot_release(f->store, &snapshot);
	f->options.retention_bytes = 1;
	reopen(f);
	assert_int_equal(store_tick(f->store, NULL), 0);
	assert_int_equal(stat_of(f).parts, 0);
}

/* The part stays as long as it has younger reports; what is older in it is not shown. */
static void what_is_over_age_is_not_shown(void **state)
{
	struct fixture *f = *state;
	struct store_snapshot snapshot;
	struct segment_buffer buffer = { 0 };
	struct segment_block block;
	uint32_t found[2] = { 0 };

	append(f, 0);
	f->now_ns = (BATCHES_START_S + 50 * 60) * CLOCK_NS_PER_S;
	append(f, 50 * 60);
	seal(f);
	f->options.retention_ns = HOUR_NS;
	reopen(f);
	f->now_ns = (BATCHES_START_S + 3600 + 30 * 60) * CLOCK_NS_PER_S;
	assert_int_equal(store_tick(f->store, NULL), 0);
	assert_int_equal(stat_of(f).reports, 2);
	assert_int_equal(take(f, 0, INT64_MAX, &snapshot), 0);
	for (size_t i = 0; i < snapshot.count; i++) {
		struct segment *segment = &snapshot.segments[i];

		assert_int_equal(segment_read(segment, 0, SEGMENT_ROWS, &buffer, &block, NULL), 0);
		for (uint32_t k = 0; k < block.reports_count; k++) {
			int64_t at_ns = block.reports[k].start_ns;

			if (segment_answers_for(segment, at_ns))
				found[at_ns > BATCHES_START_S * CLOCK_NS_PER_S]++;
		}
	}
	assert_int_equal(found[0], 0);
	assert_int_equal(found[1], 1);
	segment_buffer_free(&buffer);
	store_snapshot_release(f->store, &snapshot);
}

#define SEALS 400

static void retention_by_size_counts_the_log_and_keeps_something(void **state)
{
	struct fixture *f = *state;
	struct store_stat stat;
	uint64_t limit;

	for (uint32_t i = 0; i < SEALS; i++) {
		append(f, i);
		seal(f);
	}
	append(f, SEALS);
	reopen(f);
	stat = stat_of(f);
	assert_int_equal(stat.parts, SEALS);
	limit = stat.bytes_total - stat.bytes_wal / 2;
	assert_true(limit < stat.bytes_total && limit > 2 * stat.bytes_wal);
	f->options.retention_bytes = limit;
	reopen(f);
	assert_int_equal(store_tick(f->store, NULL), 0);
	stat = stat_of(f);
	assert_in_range(stat.bytes_total, limit / 2, limit);
	assert_in_range(stat.parts, 1, SEALS - 1);
}

static void snapshot_opens_nothing_outside_the_range(void **state)
{
	struct fixture *f = *state;
	struct store_snapshot snapshot;
	int64_t at = (BATCHES_START_S + 50) * CLOCK_NS_PER_S;

	append(f, 0);
	seal(f);
	append(f, 50);
	seal(f);
	sim_disk_flip(f->disk, DIR "/part-000001.firn", 100, 1);
	assert_int_equal(take(f, at, at + 1, &snapshot), 0);
	assert_int_equal(snapshot.count, 1);
	assert_int_equal(snapshot.parts_unreadable, 0);
	store_snapshot_release(f->store, &snapshot);
	assert_int_equal(take(f, at + 1, INT64_MAX, &snapshot), 0);
	assert_int_equal(snapshot.count, 0);
	store_snapshot_release(f->store, &snapshot);
}

/* A series that no label names, whose rows say in which container they were. */
static void append_rows_of_containers(struct fixture *f)
{
	const struct column column = { 0, 0, COLUMN_DELTA };
	const char *const functions[] = { "main" };
	struct group group = { .column_count = 1 };
	struct append_result result;
	struct label label;
	struct tables tables;
	struct tables_view view;
	int64_t value = 7;

	tables_init(&tables);
	label = (struct label){ .name = tables_string(&tables, slice_of("container")),
				.value = tables_string(&tables, slice_of("web")) };
	tables_report_begin(&tables,
			    tables_series(&tables, 0, tables_group(&tables, &group, &column)),
			    NOW_NS, CLOCK_NS_PER_S, 1);
	tables_row(&tables, batches_stack(&tables, functions, 1),
		   tables_label_set(&tables, &label, 1), &value);
	view = tables_view_of(&tables);
	assert_int_equal(store_append(f->store, &view, &result, NULL), 0);
	assert_int_equal(result.reports_stored, 1);
	tables_free(&tables);
}

/*
 * However many series a memtable has, a query about others does not look at them. Rows carry the
 * label `container`: reports without a row that matches count among those of their series.
 */
static void memtable_without_a_text_of_the_query_is_left_out(void **state)
{
	static const struct {
		const char *selector;
		size_t segments;
	} cases[] = {
		{ "{container=\"web\"}", 1 }, { "{container=\"db\"}", 1 },
		{ "{comm!=\"db\"}", 1 },      { "{comm=~\"db\"}", 1 },
		{ "{other=\"\"}", 1 },	      { "{comm=\"17\"}", 1 }, /* may be a number */
		{ "{comm=\"-17\"}", 1 },      { "{comm=\"17a\"}", 0 },
		{ "{comm=\"db\"}", 0 },
	};
	struct store_query query = { .from_ns = 0, .to_ns = INT64_MAX };
	struct fixture *f = *state;

	append_rows_of_containers(f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store_snapshot snapshot;
		struct selector selector;

		assert_int_equal(selector_parse(slice_of(cases[i].selector), &selector, NULL), 0);
		query.selector = &selector;
		assert_int_equal(store_snapshot(f->store, &query, &snapshot, NULL), 0);
		assert_int_equal(snapshot.count, cases[i].segments);
		store_snapshot_release(f->store, &snapshot);
		selector_free(&selector);
	}
}

static size_t dictionary_bytes(struct fixture *f)
{
	const struct part_cache *cache = &store_disk_of(f->store)->cache;

	assert_int_equal(cache->count, 1);
	return cache->parts[0]->reader ? part_reader_bytes(cache->parts[0]->reader) : 0;
}

static void load_dictionaries(struct fixture *f, bool aged)
{
	const struct store_query query = { .from_ns = 0, .to_ns = INT64_MAX };
	struct store_snapshot snapshot;

	assert_int_equal(store_snapshot(f->store, &query, &snapshot, NULL), 0);
	if (aged) /* twice: in use they stay */
		part_cache_age(&store_disk_of(f->store)->cache);
	if (aged)
		part_cache_age(&store_disk_of(f->store)->cache);
	assert_true(snapshot.segments[0].view.strings_count > 1);
	store_snapshot_release(f->store, &snapshot);
}

static void dictionaries_that_nobody_uses_are_given_up(void **state)
{
	struct fixture *f = *state;
	size_t loaded, small;

	append_rows_of_containers(f);
	seal(f);
	load_dictionaries(f, false);
	loaded = dictionary_bytes(f);
	part_cache_age(&store_disk_of(f->store)->cache);
	assert_int_equal(dictionary_bytes(f), loaded);
	part_cache_age(&store_disk_of(f->store)->cache);
	small = dictionary_bytes(f);
	assert_true(small < loaded);
	load_dictionaries(f, true);
	assert_true(dictionary_bytes(f) > small);
}

static void what_only_rows_are_called_is_found_in_parts(void **state)
{
	struct store_query query = { .from_ns = 0, .to_ns = INT64_MAX };
	struct fixture *f = *state;
	struct store_snapshot snapshot;
	struct selector selector;

	append_rows_of_containers(f);
	seal(f);
	assert_int_equal(selector_parse(slice_of("{container=\"web\"}"), &selector, NULL), 0);
	query.selector = &selector;
	assert_int_equal(store_snapshot(f->store, &query, &snapshot, NULL), 0);
	assert_int_equal(snapshot.count, 1);
	store_snapshot_release(f->store, &snapshot);
	selector_free(&selector);
	assert_int_equal(selector_parse(slice_of("{comm=\"web\"}"), &selector, NULL), 0);
	assert_int_equal(store_snapshot(f->store, &query, &snapshot, NULL), 0);
	assert_int_equal(snapshot.count, 0); /* nor series nor rows have it */
	store_snapshot_release(f->store, &snapshot);
	selector_free(&selector);
}

static void damaged_part_is_set_aside_and_the_rest_served(void **state)
{
	struct fixture *f = *state;
	struct strbuf report = { 0 };
	uint32_t found[60];

	append(f, 0);
	seal(f);
	append(f, 50);
	seal(f);
	sim_disk_flip(f->disk, DIR "/part-000001.firn", 100, 1);
	assert_int_equal(batches_find(f->store, found, 60), 1);
	assert_int_equal(found[50], 1);
	assert_int_equal(store_tick(f->store, NULL), 0);
	assert_true(sim_disk_has(f->disk, DIR "/quarantine/part-000001.firn", NULL));
	assert_false(sim_disk_has(f->disk, DIR "/part-000001.firn", NULL));
	reopen(f);
	assert_int_equal(batches_find(f->store, found, 60), 1); /* answers still say so */
	assert_int_equal(stat_of(f).parts_quarantined, 1);
	assert_int_equal(store_verify(DIR, f->options.vfs, &report, NULL), -ERR_CORRUPT);
	assert_non_null(strstr(report.data, "part"));
	strbuf_free(&report);
}

static void damage_in_the_log_is_told_and_the_rest_kept(void **state)
{
	struct fixture *f = *state;
	struct strbuf report = { 0 };
	uint32_t found[5];

	for (uint32_t n = 0; n < 5; n++)
		append(f, n);
	/* Somewhere in the first record; the later ones prove that it was acknowledged. */
	assert_true(sim_disk_flip(f->disk, DIR "/wal-000001-0000.wal", 48 + 40 + 60, 4));
	assert_int_equal(store_verify(DIR, f->options.vfs, &report, NULL), -ERR_CORRUPT);
	assert_non_null(strstr(report.data, "wal-000001-0000.wal: offset 48"));
	strbuf_free(&report);
	reopen(f);
	batches_find(f->store, found, 5);
	assert_int_equal(found[0], 0);
	for (uint32_t n = 1; n < 5; n++)
		assert_int_equal(found[n], 1);
	assert_int_equal(append(f, 0).reports_stored, 1);
	seal(f);
	assert_true(sim_disk_has(f->disk, DIR "/quarantine/wal-000001-0000.wal", NULL));
	batches_find(f->store, found, 5);
	for (uint32_t n = 0; n < 5; n++)
		assert_int_equal(found[n], 1);
}

/* How many operations of the disk an append takes. */
static uint64_t operations_of_append(struct fixture *f, uint32_t n)
{
	sim_disk_plan(f->disk, SIM_NO_FAULT, 1, 0);
	append(f, n);
	return sim_disk_operations(f->disk);
}

static void segment_made_ahead_needs_no_name_when_it_begins(void **state)
{
	const uint64_t write_and_sync = 2;
	struct fixture *f = *state;
	uint32_t found[5];

	assert_int_equal(store_tick(f->store, NULL), 0);
	assert_true(sim_disk_has(f->disk, DIR "/wal-000001-0000.wal", NULL));
	assert_int_equal(operations_of_append(f, 0), 2 * write_and_sync);
	assert_int_equal(operations_of_append(f, 1), write_and_sync);
	assert_int_equal(store_tick(f->store, NULL), 0);
	assert_true(sim_disk_has(f->disk, DIR "/wal-000002-0000.wal", NULL));
	seal(f);
	assert_int_equal(operations_of_append(f, 2), 2 * write_and_sync);
	seal(f);
	assert_true(operations_of_append(f, 3) > 2 * write_and_sync); /* none was made */
	assert_int_equal(store_tick(f->store, NULL), 0);
	sim_disk_restart(f->disk, SIM_LOSE_ALL);
	reopen(f);
	append(f, 4);
	assert_int_equal(batches_find(f->store, found, 5), 0);
	for (uint32_t n = 0; n < 5; n++)
		assert_int_equal(found[n], 1);
}

static void segment_that_was_never_begun_goes_at_the_next_start(void **state)
{
	struct strbuf report = { 0 };
	struct fixture *f = *state;
	struct err err;

	append(f, 0);
	assert_int_equal(store_tick(f->store, NULL), 0);
	assert_true(sim_disk_has(f->disk, DIR "/wal-000002-0000.wal", NULL));
	sim_disk_restart(f->disk, SIM_LOSE_ALL);
	assert_int_equal(store_verify(DIR, f->options.vfs, &report, &err), 0);
	assert_string_equal(strbuf_text(&report), "");
	reopen(f);
	assert_false(sim_disk_has(f->disk, DIR "/wal-000002-0000.wal", NULL));
	assert_int_equal(stat_of(f).memtables, 1);
	assert_int_equal(stat_of(f).reports, 1);
	strbuf_free(&report);
}

/* As a machine leaves a write that it stopped in: the segment was full of zeros. */
static void cut_off(const struct fixture *f, const char *path, uint64_t from)
{
	static const char zeros[4096];
	struct vfs_file *file;

	assert_int_equal(vfs_open(f->options.vfs, path, VFS_WRITE, &file, NULL), 0);
	assert_int_equal(vfs_write_all(file, zeros, sizeof(zeros), from, NULL), 0);
	assert_int_equal(vfs_sync(file, NULL), 0);
	vfs_close(file);
}

/* It was written as a whole, so that no crash cut it off: header and payload, any bit. */
static void damage_of_the_last_record_is_told(void **state)
{
	struct fixture *f = *state;
	uint32_t found[3];

	append(f, 0);
	append(f, 1);
	for (uint64_t at = 480; at < 520; at += 5) {
		struct strbuf report = { 0 };

		assert_true(sim_disk_flip(f->disk, DIR "/wal-000001-0000.wal", at, 4));
		assert_int_equal(store_verify(DIR, f->options.vfs, &report, NULL), -ERR_CORRUPT);
		assert_non_null(strstr(report.data, "the last record is damaged"));
		assert_true(sim_disk_flip(f->disk, DIR "/wal-000001-0000.wal", at, 4));
		strbuf_free(&report);
	}
	assert_true(sim_disk_flip(f->disk, DIR "/wal-000001-0000.wal", 500, 4));
	for (int round = 0; round < 2; round++) {
		reopen(f);
		append(f, 2);
		batches_find(f->store, found, 3);
		assert_int_equal(found[0], 1);
		assert_int_equal(found[1], 0);
		assert_int_equal(found[2], 1);
	}
}

static void torn_tail_is_a_note_and_stays_one(void **state)
{
	struct fixture *f = *state;
	struct strbuf report = { 0 };
	uint32_t found[5];

	append(f, 0);
	append(f, 1);
	/* The last record was not acknowledged by anything later: taken as never finished. */
	cut_off(f, DIR "/wal-000001-0000.wal", 512);
	for (int round = 0; round < 3; round++) {
		reopen(f);
		assert_int_equal(append(f, 2 + (uint32_t)round).reports_stored, 1);
		strbuf_clear(&report);
		assert_int_equal(store_verify(DIR, f->options.vfs, &report, NULL), 0);
		assert_non_null(strstr(report.data, "note: wal-000001-0000.wal"));
	}
	batches_find(f->store, found, 5);
	assert_int_equal(found[0], 1);
	assert_int_equal(found[4], 1);
	strbuf_free(&report);
}

static void missing_log_segment_is_noticed(void **state)
{
	struct fixture *f = *state;
	struct strbuf report = { 0 };

	append(f, 0);
	reopen(f);
	append(f, 1);
	f->options.vfs->unlink(f->options.vfs, DIR "/wal-000001-0000.wal");
	assert_int_equal(store_verify(DIR, f->options.vfs, &report, NULL), -ERR_CORRUPT);
	assert_non_null(strstr(report.data, "missing"));
	strbuf_free(&report);
}

static void damaged_segment_header_costs_no_record(void **state)
{
	struct fixture *f = *state;
	struct strbuf report = { 0 };
	uint32_t found[3];

	append(f, 0);
	append(f, 1);
	assert_true(sim_disk_flip(f->disk, DIR "/wal-000001-0000.wal", 20, 1));
	assert_int_equal(store_verify(DIR, f->options.vfs, &report, NULL), -ERR_CORRUPT);
	assert_non_null(strstr(report.data, "wal-000001-0000.wal: offset 0: header is damaged"));
	strbuf_free(&report);
	reopen(f);
	append(f, 2);
	reopen(f);
	batches_find(f->store, found, 3);
	for (uint32_t n = 0; n < 3; n++)
		assert_int_equal(found[n], 1);
}

static void damaged_manifest_is_refused_and_no_part_removed(void **state)
{
	struct fixture *f = *state;
	struct strbuf report = { 0 };
	uint64_t bytes_of_first;
	struct err err = { 0 };

	append(f, 0);
	assert_true(sim_disk_has(f->disk, DIR "/MANIFEST-000001", &bytes_of_first));
	for (uint32_t n = 0; n < 3; n++) {
		append(f, n + 1);
		seal(f);
	}
	store_close(f->store);
	f->store = NULL;
	/* In the first edit: those behind it were in force. */
	assert_true(sim_disk_flip(f->disk, DIR "/MANIFEST-000001", bytes_of_first + 20, 1));
	assert_int_equal(store_verify(DIR, f->options.vfs, &report, &err), -ERR_CORRUPT);
	strbuf_free(&report);
	assert_int_equal(store_open(&f->options, &f->store, &err), -ERR_CORRUPT);
	assert_non_null(strstr(err.message, "MANIFEST-000001"));
	assert_true(sim_disk_has(f->disk, DIR "/part-000001.firn", NULL));
	assert_true(sim_disk_has(f->disk, DIR "/part-000003.firn", NULL));
}

/* Cumulative and gauge columns side by side, as Go's heap profile has them. */
static struct append_result append_heap(struct fixture *f, int64_t at_s, uint64_t batch_id,
					const int64_t (*values)[2], size_t stacks)
{
	static const enum column_kind kinds[] = { COLUMN_CUMULATIVE, COLUMN_GAUGE };
	struct append_result result = { 0 };
	struct tables tables;
	struct tables_view view;
	struct err err = { 0 };

	tables_init(&tables);
	tables_report_begin(&tables, batches_series(&tables, "go", kinds, 2),
			    (BATCHES_START_S + at_s) * CLOCK_NS_PER_S, 0, batch_id);
	for (size_t i = 0; i < stacks; i++) {
		char leaf[16];
		const char *const functions[] = { "main", leaf };

		snprintf(leaf, sizeof(leaf), "leaf%u", (uint32_t)i % 100);
		tables_row(&tables, batches_stack(&tables, functions, 2), 0, values[i]);
	}
	view = tables_view_of(&tables);
	if (store_append(f->store, &view, &result, &err))
		fail_msg("append: %s", err.message);
	tables_free(&tables);
	return result;
}

/*
 * Totals and duration of the report that starts at that second. A snapshot of the amounts since
 * the start of the program is beside it, or none (0).
 */
static void expect_heap(struct fixture *f, int64_t at_s, uint32_t rows, int64_t delta,
			int64_t gauge, int64_t duration_s, int64_t snapshot_total)
{
	int64_t start_ns = (BATCHES_START_S + at_s) * CLOCK_NS_PER_S;
	struct segment_buffer buffer = { 0 };
	struct store_snapshot snapshot;
	struct segment_block block;
	size_t seen = 0;
	int64_t snapshots = 0;

	assert_int_equal(take(f, start_ns, start_ns + 1, &snapshot), 0);
	for (size_t i = 0; i < snapshot.count; i++) {
		struct segment *segment = &snapshot.segments[i];
		const struct tables_view *view = &segment->view;

		for (uint32_t j = 0; j < segment->blocks_count; j++) {
			assert_int_equal(
				segment_read(segment, j, SEGMENT_HEADERS, &buffer, &block, NULL),
				0);
			for (uint32_t k = 0; k < block.reports_count; k++) {
				const struct segment_report *report = &block.reports[k];
				const struct group *group =
					&view->groups[view->series[report->series].group];

				if (report->start_ns != start_ns)
					continue;
				if (group->column_count == 1) {
					assert_int_equal(view->columns[group->column_first].kind,
							 COLUMN_GAUGE);
					assert_int_equal(report->duration_ns, 0);
					snapshots += block.totals[report->total_first];
					continue;
				}
				seen++;
				assert_int_equal(view->columns[group->column_first].kind,
						 COLUMN_DELTA);
				assert_int_equal(view->columns[group->column_first + 1].kind,
						 COLUMN_GAUGE);
				assert_int_equal(report->row_count, rows);
				assert_int_equal(block.totals[report->total_first], delta);
				assert_int_equal(block.totals[report->total_first + 1], gauge);
				assert_int_equal(report->duration_ns, duration_s * CLOCK_NS_PER_S);
			}
		}
	}
	assert_int_equal(seen, 1);
	assert_int_equal(snapshots, snapshot_total);
	store_snapshot_release(f->store, &snapshot);
	segment_buffer_free(&buffer);
}

static void cumulative_values_become_deltas_across_restarts(void **state)
{
	struct fixture *f = *state;
	const int64_t first[][2] = { { 100, 7 }, { 50, 0 } };
	const int64_t second[][2] = { { 130, 8 }, { 50, 0 }, { 5, 0 } };
	const int64_t third[][2] = { { 131, 0 }, { 60, 0 }, { 5, 0 } };
	const int64_t restarted[][2] = { { 20, 3 }, { 70, 0 } };

	append_heap(f, 0, 1, first, 2);
	expect_heap(f, 0, 1, 0, 7, 0, 150); /* a baseline: no delta yet; the gauge is kept */
	reopen(f);
	append_heap(f, 10, 2, second, 3);
	expect_heap(f, 10, 2, 30 + 5, 8, 10, 0);
	seal(f);
	reopen(f);
	append_heap(f, 25, 3, third, 3);
	expect_heap(f, 25, 2, 1 + 10, 0, 15, 0);
	append_heap(f, 12, 4, first, 2); /* older than the baseline: nothing to count from */
	expect_heap(f, 12, 1, 0, 7, 0, 150);
	append_heap(f, 35, 5, restarted, 2); /* the total went down: all of it is new */
	expect_heap(f, 35, 2, 90, 3, 10, 0);
}

static void repeated_rows_of_a_cumulative_report_are_summed_first(void **state)
{
	static const enum column_kind kind = COLUMN_CUMULATIVE;
	struct fixture *f = *state;
	static const char *const functions[] = { "main" };

	for (int64_t at = 0; at < 2; at++) {
		struct append_result result;
		struct tables tables;
		struct tables_view view;
		int64_t value = 10 + at;

		tables_init(&tables);
		tables_report_begin(&tables, batches_series(&tables, "go", &kind, 1),
				    (BATCHES_START_S + at) * CLOCK_NS_PER_S, 0, 1);
		for (int i = 0; i < 3; i++)
			tables_row(&tables, batches_stack(&tables, functions, 1), 0, &value);
		view = tables_view_of(&tables);
		assert_int_equal(store_append(f->store, &view, &result, NULL), 0);
		assert_int_equal(result.rows_stored, 1); /* of 3; first of the snapshot */
		assert_int_equal(result.snapshots, 1 - at);
		tables_free(&tables);
	}
	assert_int_equal(stat_of(f).rows, 2);
}

/* Plain and cumulative reports in turn, each in a generation of its own. */
static void log_of_several_generations_is_read_back_as_it_was(void **state)
{
	struct fixture *f = *state;
	const int64_t first[][2] = { { 100, 7 } }, second[][2] = { { 130, 8 } };

	f->options.seal_bytes = 1;
	reopen(f);
	append_heap(f, 100, 1, first, 1);
	append(f, 1);
	append_heap(f, 110, 2, second, 1);
	assert_int_equal(stat_of(f).memtables, 3);
	for (int round = 0; round < 3; round++) {
		reopen(f);
		assert_int_equal(stat_of(f).memtables, 3);
		assert_int_equal(stat_of(f).reports, 3 + 1); /* a snapshot */
		expect_heap(f, 100, 1, 0, 7, 0, 100);
		expect_heap(f, 110, 1, 30, 8, 10, 0);
	}
	assert_int_equal(append(f, 1).reports_duplicate, 1);
}

static void broken_batch_is_refused_before_it_is_logged(void **state)
{
	struct fixture *f = *state;
	struct append_result result;
	struct tables tables;
	struct tables_view view;
	struct err err;

	tables_init(&tables);
	batches_add(&tables, 0);
	((int64_t *)tables.totals.data)[0]++;
	view = tables_view_of(&tables);
	assert_int_equal(store_append(f->store, &view, &result, &err), -ERR_INVALID);
	tables_free(&tables);
	assert_int_equal(append(f, 0).reports_stored, 1);
}

/* It is looked at no further than to count. */
static void times_of_samples_count_to_the_size_of_a_batch(void **state)
{
	struct fixture *f = *state;
	struct append_result result;
	struct tables tables;
	struct tables_view view;
	struct err err;

	tables_init(&tables);
	batches_add(&tables, 0);
	view = tables_view_of(&tables);
	view.moments_count = STORE_BATCH_BYTES_MAX / sizeof(struct moment) + 1;
	assert_int_equal(store_append(f->store, &view, &result, &err), -ERR_INVALID);
	assert_non_null(strstr(err.message, "is over the limit"));
	tables_free(&tables);
}

static void memtable_is_sealed_by_size_and_by_age(void **state)
{
	struct fixture *f = *state;

	append(f, 0);
	assert_int_equal(store_tick(f->store, NULL), 0);
	assert_int_equal(stat_of(f).parts, 0);
	f->now_ns += 601 * CLOCK_NS_PER_S;
	assert_int_equal(store_tick(f->store, NULL), 0);
	assert_int_equal(stat_of(f).parts, 1);
	f->options.seal_bytes = 1;
	reopen(f);
	append(f, 1);
	append(f, 2); /* ends the generation of the one before */
	assert_int_equal(stat_of(f).memtables, 2);
	assert_int_equal(store_tick(f->store, NULL), 0);
	assert_int_equal(stat_of(f).parts, 3);
	assert_int_equal(stat_of(f).series, 3);
	assert_int_equal(stat_of(f).reports, 3);
}

static void second_opener_is_told_who_holds_the_store(void **state)
{
	struct fixture *f = *state;
	struct store *second;
	struct err err;
	char pid[32];

	snprintf(pid, sizeof(pid), "pid %d", getpid());
	assert_int_equal(store_open(&f->options, &second, &err), -ERR_BUSY);
	assert_non_null(strstr(err.message, pid));
	append(f, 0);
	f->options.read_only = true; /* looks without the lock */
	assert_int_equal(store_open(&f->options, &second, &err), 0);
	f->options.read_only = false;
	{
		struct append_result result;
		uint32_t found[1];

		batches_find(second, found, 1);
		assert_int_equal(found[0], 1);
		assert_int_equal(batches_append(second, 1, &result, &err), -ERR_READ_ONLY);
	}
	store_close(second);
}

static void foreign_and_incomplete_directories_are_refused(void **state)
{
	struct fixture *f = *state;
	struct store_options options = f->options;
	const struct vfs *vfs = f->options.vfs;
	struct vfs_file *file;
	struct store *store;
	struct err err;

	vfs->mkdir(vfs, "/home");
	assert_int_equal(vfs_open(vfs, "/home/thesis.odt", VFS_WRITE | VFS_CREATE, &file, &err), 0);
	vfs_close(file);
	options.path = "/home";
	assert_int_equal(store_open(&options, &store, &err), -ERR_INVALID);
	assert_non_null(strstr(err.message, "thesis.odt"));
	assert_false(sim_disk_has(f->disk, "/home/LOCK", NULL));
	options.read_only = true;
	options.path = "/nowhere";
	assert_int_equal(store_open(&options, &store, &err), -ERR_NOT_FOUND);
	append(f, 0);
	store_close(f->store);
	vfs->unlink(vfs, DIR "/CURRENT");
	assert_int_equal(store_open(&f->options, &store, &err), -ERR_CORRUPT);
	assert_non_null(strstr(err.message, "CURRENT"));
	f->store = NULL;
}

#define NOBODY 65534 /* Debian's user of that name */

static void read_only_directory_is_a_clear_error(void **state)
{
	char path[] = "/tmp/firn-store-XXXXXX";
	struct store_options options = { .path = path, .no_background = true };
	const bool was_root = !geteuid();
	struct store *store;
	struct err err;

	(void)state;
	if (was_root) /* which writes anywhere */
		assert_int_equal(seteuid(NOBODY), 0);
	assert_non_null(mkdtemp(path));
	chmod(path, 0500);
	assert_int_equal(store_open(&options, &store, &err), -ERR_DENIED);
	assert_non_null(strstr(err.message, "cannot be written"));
	rmdir(path);
	if (was_root)
		assert_int_equal(seteuid(0), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(repeated_report_counts_once_across_seal_and_restart),
		TEST(status_counts_series_again_when_there_are_more),
		TEST(status_that_counted_for_long_rests),
		TEST(snapshots_of_parts_alone_have_a_version),
		TEST(late_and_future_reports_are_refused_one_by_one),
		TEST(retention_drops_whole_parts_and_keeps_pinned_ones_readable),
		TEST(what_is_over_age_is_not_shown),
		TEST(retention_by_size_counts_the_log_and_keeps_something),
		TEST(snapshot_opens_nothing_outside_the_range),
		TEST(memtable_without_a_text_of_the_query_is_left_out),
		TEST(what_only_rows_are_called_is_found_in_parts),
		TEST(dictionaries_that_nobody_uses_are_given_up),
		TEST(damaged_part_is_set_aside_and_the_rest_served),
		TEST(damage_in_the_log_is_told_and_the_rest_kept),
		TEST(segment_made_ahead_needs_no_name_when_it_begins),
		TEST(segment_that_was_never_begun_goes_at_the_next_start),
		TEST(torn_tail_is_a_note_and_stays_one),
		TEST(damage_of_the_last_record_is_told),
		TEST(missing_log_segment_is_noticed),
		TEST(damaged_segment_header_costs_no_record),
		TEST(damaged_manifest_is_refused_and_no_part_removed),
		TEST(cumulative_values_become_deltas_across_restarts),
		TEST(repeated_rows_of_a_cumulative_report_are_summed_first),
		TEST(log_of_several_generations_is_read_back_as_it_was),
		TEST(broken_batch_is_refused_before_it_is_logged),
		TEST(times_of_samples_count_to_the_size_of_a_batch),
		TEST(memtable_is_sealed_by_size_and_by_age),
		TEST(second_opener_is_told_who_holds_the_store),
		TEST(foreign_and_incomplete_directories_are_refused),
		cmocka_unit_test(read_only_directory_is_a_clear_error),
	};

	log_set(LOG_LEVELS, LOG_LOGFMT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
