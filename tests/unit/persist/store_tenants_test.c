/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of single tenants, and how long times of samples are kept. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "batches.h"
#include "server/persist/store_admin.h"
#include "sim_disk.h"

#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define HOURS 72
#define START_NS (1700006400 * CLOCK_NS_PER_S) /* a day begins */
#define TENANTS 2
#define LIMITS 100
#define READERS 3

static const char *const tenants[TENANTS] = { "acme", "other" };

struct world {
	struct sim_disk *disk;
	_Atomic int64_t now_ns;
	_Atomic bool done;
	struct store *store;
};

static int64_t clock_of(void *context)
{
	const struct world *world = context;

	return atomic_load(&world->now_ns);
}

/* A report per hour of a tenant, with a stack and a moment of its own. */
static void append(struct world *world, const char *tenant, uint32_t hour)
{
	struct trace_link link = { .trace_id = { 1, (uint8_t)hour } };
	const char *functions[] = { "main", NULL };
	struct append_result result;
	struct tables tables;
	struct tables_view view;
	struct label labels[2];
	struct column column;
	struct err err;
	char name[32];

	tables_init(&tables);
	snprintf(name, sizeof(name), "function-%u", hour);
	functions[1] = name;
	labels[0] = (struct label){ .name = tables_string(&tables, SLICE_LITERAL("__tenant__")),
				    .value = tables_string(&tables, slice_of(tenant)) };
	labels[1] = (struct label){ .name = tables_string(&tables, SLICE_LITERAL("comm")),
				    .value = tables_string(&tables, SLICE_LITERAL("api")) };
	column = (struct column){ .sample_type = tables_string(&tables, SLICE_LITERAL("samples")) };
	tables_report_begin(
		&tables,
		tables_series(&tables, tables_label_set(&tables, labels, 2),
			      tables_group(&tables, &(struct group){ .column_count = 1 }, &column)),
		START_NS + hour * HOUR_NS, HOUR_NS, hour);
	tables_row(&tables, batches_stack(&tables, functions, 2), 0, &(int64_t){ 1 });
	tables_moments(&tables, &(struct moment){ 0, hour, tables_link(&tables, &link) }, 1);
	view = tables_view_of(&tables);
	if (store_append(world->store, &view, &result, &err))
		fail_msg("append: %s", err.message);
	assert_int_equal(result.reports_stored, 1);
	tables_free(&tables);
}

/* A store with three days of both tenants, in parts of six hours. */
static void begin_limited(struct world *world, const struct store_tenant_limit *limits,
			  size_t limits_count, int64_t moments_ns)
{
	struct store_options options = {
		.path = "/store",
		.clock = clock_of,
		.clock_context = world,
		.tenant_limits = limits,
		.tenant_limits_count = limits_count,
		.moments_ns = moments_ns,
		.cache_bytes = 1, /* parts are opened anew each time */
		.no_background = true,
	};
	struct err err;

	*world = (struct world){ .disk = sim_disk_new(1), .now_ns = START_NS };
	options.vfs = sim_disk_vfs(world->disk);
	if (store_open(&options, &world->store, &err))
		fail_msg("open: %s", err.message);
	for (uint32_t hour = 0; hour < HOURS; hour++) {
		world->now_ns = START_NS + hour * HOUR_NS;
		for (size_t i = 0; i < TENANTS; i++)
			append(world, tenants[i], hour);
		if (hour % 6 == 5 && store_seal(world->store, &err))
			fail_msg("seal: %s", err.message);
	}
}

static void begin(struct world *world, const struct store_tenant_limit *limit, int64_t moments_ns)
{
	begin_limited(world, limit, limit ? 1 : 0, moments_ns);
}

static void end(struct world *world)
{
	store_close(world->store);
	sim_disk_free(world->disk);
}

static void tick(struct world *world)
{
	struct err err;

	if (store_tick(world->store, &err))
		fail_msg("tick: %s", err.message);
}

static void compact(struct world *world)
{
	const struct store_compact_options options = { .all = true };
	struct store_compacted done;
	struct err err;

	if (store_compact(world->store, &options, &done, &err))
		fail_msg("compact: %s", err.message);
}

struct found {
	uint32_t reports, moments;
	int64_t first_ns;
};

static struct found find(struct world *world, const char *tenant)
{
	const struct store_query query = { .from_ns = INT64_MIN,
					   .to_ns = INT64_MAX,
					   .one_tenant = true,
					   .tenant = slice_of(tenant) };
	struct found found = { .first_ns = INT64_MAX };
	struct segment_buffer buffer = { 0 };
	struct store_snapshot snapshot;
	struct err err;

	assert_int_equal(store_snapshot(world->store, &query, &snapshot, &err), 0);
	for (size_t i = 0; i < snapshot.count; i++) {
		struct segment *segment = &snapshot.segments[i];

		for (uint32_t b = 0; b < segment->blocks_count; b++) {
			struct segment_block block;

			assert_int_equal(
				segment_read(segment, b, SEGMENT_MOMENTS, &buffer, &block, &err),
				0);
			for (uint32_t r = 0; r < block.reports_count; r++) {
				found.reports++;
				found.moments += block.moments ? block.reports[r].moment_count : 0;
				if (block.reports[r].start_ns < found.first_ns)
					found.first_ns = block.reports[r].start_ns;
			}
		}
	}
	store_snapshot_release(world->store, &snapshot);
	segment_buffer_free(&buffer);
	return found;
}

static void a_tenant_keeps_what_is_young_enough(void **state)
{
	const struct store_tenant_limit limit = { .tenant = "acme", .retention_ns = 30 * HOUR_NS };
	struct store_deletes deletes;
	struct world world;

	(void)state;
	begin(&world, &limit, 0);
	tick(&world); /* at hour 71: older than hour 41, in windows of two hours: before 40 */
	for (int round = 0; round < 2; round++) {
		assert_int_equal(find(&world, "acme").first_ns, START_NS + 40 * HOUR_NS);
		assert_int_equal(find(&world, "acme").reports, HOURS - 40);
		assert_int_equal(find(&world, "other").reports, HOURS);
		compact(&world);
	}
	store_deletes(world.store, NULL, &deletes);
	assert_int_equal(deletes.count, 1);
	assert_string_equal(deletes.items[0].by, "retention");
	assert_int_not_equal(deletes.items[0].done_ns, 0); /* the bytes are gone */
	store_deletes_free(&deletes);
	world.now_ns += HOUR_NS / 2;
	tick(&world); /* nothing new is over age: no order for nothing */
	store_deletes(world.store, NULL, &deletes);
	assert_int_equal(deletes.count, 1);
	store_deletes_free(&deletes);
	world.now_ns += HOUR_NS;
	tick(&world);
	assert_int_equal(find(&world, "acme").first_ns, START_NS + 42 * HOUR_NS);
	end(&world);
}

static void a_tenant_keeps_what_fits(void **state)
{
	struct store_tenant_limit limit = { .tenant = "acme", .bytes = 1 };
	struct store_stat all, stat;
	struct world world;
	struct err err;

	(void)state;
	begin(&world, NULL, 0);
	assert_int_equal(store_stat(world.store, &all, &err), 0);
	end(&world);
	/* A third of what it has: of twelve parts, four or so. */
	limit.bytes = (all.bytes_samples + all.bytes_stacks + all.bytes_symbols) / 2 / 3;
	begin(&world, &limit, 0);
	tick(&world);
	assert_in_range(find(&world, "acme").reports, 12, 36);
	assert_int_equal(find(&world, "acme").reports % 6, 0); /* by whole parts, oldest first */
	assert_int_equal(find(&world, "acme").first_ns,
			 START_NS + (HOURS - find(&world, "acme").reports) * HOUR_NS);
	assert_int_equal(find(&world, "other").reports, HOURS);
	compact(&world);
	assert_in_range(find(&world, "acme").reports, 12, 36);
	assert_int_equal(find(&world, "other").reports, HOURS);
	assert_int_equal(store_stat(world.store, &stat, &err), 0);
	assert_int_equal(stat.reports, HOURS + find(&world, "acme").reports);
	end(&world);
}

static void times_of_samples_go_before_the_rest(void **state)
{
	struct world world;

	(void)state;
	begin(&world, NULL, 24 * HOUR_NS);
	assert_int_equal(find(&world, "acme").moments, HOURS);
	compact(&world); /* at hour 71 */
	assert_int_equal(find(&world, "acme").reports, HOURS);
	assert_int_equal(find(&world, "acme").moments, 25);
	end(&world);
	begin(&world, NULL, 0); /* for ever */
	compact(&world);
	assert_int_equal(find(&world, "other").moments, HOURS);
	end(&world);
}

static void *read_all(void *context)
{
	const struct store_query query = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct world *world = context;

	while (!atomic_load(&world->done)) {
		struct store_snapshot snapshot;
		struct err err;

		if (!store_snapshot(world->store, &query, &snapshot, &err))
			store_snapshot_release(world->store, &snapshot);
	}
	return NULL;
}

static int (*open_on_disk)(const struct vfs *vfs, const char *path, unsigned int flags,
			   struct vfs_file **ret);
static _Thread_local bool without_descriptors;

static int open_if_allowed(const struct vfs *vfs, const char *path, unsigned int flags,
			   struct vfs_file **ret)
{
	return without_descriptors ? -EMFILE : open_on_disk(vfs, path, flags, ret);
}

/* Who applies them cannot open what the others open at the same time. */
static void limits_are_applied_while_others_open_parts(void **state)
{
	struct store_tenant_limit limits[LIMITS];
	pthread_t readers[READERS];
	struct world world;
	struct vfs *disk;
	struct err err;

	(void)state;
	for (int i = 0; i < LIMITS; i++)
		limits[i] = (struct store_tenant_limit){ .tenant = i ? "nobody" : "acme",
							 .retention_ns = 30 * HOUR_NS };
	begin_limited(&world, limits, LIMITS, 0);
	disk = (struct vfs *)(uintptr_t)sim_disk_vfs(world.disk);
	open_on_disk = disk->open;
	disk->open = open_if_allowed;
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_all, &world), 0);
	for (uint32_t round = 0; round < 60; round++) {
		world.now_ns += 301 * CLOCK_NS_PER_S;
		without_descriptors = true;
		may_fail(store_tick(world.store, &err));
		without_descriptors = false;
	}
	world.done = true;
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	world.now_ns += 301 * CLOCK_NS_PER_S;
	tick(&world);
	assert_int_equal(find(&world, "acme").first_ns, START_NS + 46 * HOUR_NS);
	assert_int_equal(find(&world, "other").reports, HOURS);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenant_keeps_what_is_young_enough),
		cmocka_unit_test(a_tenant_keeps_what_fits),
		cmocka_unit_test(times_of_samples_go_before_the_rest),
		cmocka_unit_test(limits_are_applied_while_others_open_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
