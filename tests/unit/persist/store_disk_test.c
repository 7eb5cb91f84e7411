/* SPDX-License-Identifier: Apache-2.0 */
/* Room on the disk, and backups. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "batches.h"
#include "server/persist/disk/layout.h"
#include "server/persist/store_admin.h"
#include "server/persist/store_backup.h"
#include "sim_disk.h"

#define DIR "/store"
#define COPY "/copy"
#define MB ((uint64_t)1 << 20)

struct world {
	struct sim_disk *disk;
	int64_t now_ns;
	struct store_options options;
	struct store *store;
};

static void begin(struct world *world, uint64_t reserve_bytes)
{
	struct err err;

	*world = (struct world){ .disk = sim_disk_new(1),
				 .now_ns = (BATCHES_START_S + 100) * CLOCK_NS_PER_S };
	world->options = (struct store_options){
		.path = DIR,
		.vfs = sim_disk_vfs(world->disk),
		.clock = batches_clock,
		.clock_context = &world->now_ns,
		.reserve_bytes = reserve_bytes,
		.segment_bytes = 32 * 1024,
		.no_background = true,
	};
	if (store_open(&world->options, &world->store, &err))
		fail_msg("%s", err.message);
}

static void end(struct world *world)
{
	store_close(world->store);
	sim_disk_free(world->disk);
}

static void append(struct world *world, uint32_t n)
{
	struct append_result result;
	struct err err;

	if (batches_append(world->store, n, &result, &err))
		fail_msg("append %u: %s", n, err.message);
}

static void must(int rc, const struct err *err)
{
	if (rc)
		fail_msg("%s", err->message);
}

static uint32_t count_found(struct store *store, uint32_t reports)
{
	uint32_t found[32], count = 0;

	assert_true(reports <= 32);
	assert_int_equal(batches_find(store, found, reports), 0);
	for (uint32_t n = 0; n < reports; n++) {
		assert_true(found[n] <= 1);
		count += found[n];
	}
	return count;
}

/* Each begins a segment of the log, which is sealed before they are too many. */
static void many_short_runs_do_not_make_the_log_long(void **state)
{
	struct store_stat stat;
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 0);
	world.options.seal_bytes = 8 * MB;
	world.options.segment_bytes = 8 * MB;
	for (uint32_t run = 0; run < 20; run++) {
		store_close(world.store);
		must(store_open(&world.options, &world.store, &err), &err);
		append(&world, run);
		must(store_tick(world.store, &err), &err);
		must(store_stat(world.store, &stat, &err), &err);
		if (run < 2)
			assert_int_equal(stat.parts, 0);
	}
	assert_in_range(stat.parts, 1, 10);
	assert_int_equal(count_found(world.store, 20), 20);
	end(&world);
}

static void appends_stop_before_the_disk_is_full_and_go_on_when_it_is_not(void **state)
{
	struct append_result result;
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 100 * MB);
	append(&world, 0);
	sim_disk_set_free(world.disk, 99 * MB);
	must(store_tick(world.store, &err), &err);
	assert_int_equal(batches_append(world.store, 1, &result, &err), -ERR_NO_SPACE);
	assert_non_null(strstr(err.message, "99 MB free"));
	assert_non_null(strstr(err.message, "--storage-retention-size"));
	assert_int_equal(count_found(world.store, 2), 1); /* reads go on */
	must(store_seal(world.store, &err), &err);	  /* and so does what makes room */
	sim_disk_set_free(world.disk, 105 * MB);
	must(store_tick(world.store, &err), &err);
	assert_int_equal(batches_append(world.store, 1, &result, &err), -ERR_NO_SPACE);
	sim_disk_set_free(world.disk, 120 * MB);
	must(store_tick(world.store, &err), &err);
	append(&world, 1);
	assert_int_equal(count_found(world.store, 2), 2);
	end(&world);
}

/* Makes parts of reports [first, first + count), one by one. */
static void append_parts(struct world *world, uint32_t first, uint32_t count)
{
	struct err err;

	for (uint32_t n = first; n < first + count; n++) {
		append(world, n);
		must(store_seal(world->store, &err), &err);
	}
}

static uint64_t parts_of(struct world *world)
{
	struct store_stat stat;
	struct err err;

	must(store_stat(world->store, &stat, &err), &err);
	return stat.parts;
}

/* Two windows are due; the parts of the earlier one need more room than there is. */
static void what_cannot_be_compacted_does_not_keep_others_from_it(void **state)
{
	const struct store_compact_options all = { .all = true };
	struct store_compacted done;
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 0);
	append_parts(&world, 0, 12);
	world.now_ns += 24 * 3600 * CLOCK_NS_PER_S;
	append_parts(&world, 24 * 3600, 2);
	assert_int_equal(parts_of(&world), 14);
	sim_disk_set_free(world.disk, 6 * 1024);
	assert_int_equal(store_compact(world.store, &all, &done, &err), -ERR_NO_SPACE);
	assert_int_equal(done.jobs, 1);
	assert_int_equal(parts_of(&world), 13);
	sim_disk_set_free(world.disk, SIM_DISK_BYTES); /* who asks does not wait */
	must(store_compact(world.store, &all, &done, &err), &err);
	assert_int_equal(parts_of(&world), 2);
	end(&world);
}

static int (*open_on_disk)(const struct vfs *vfs, const char *path, unsigned int flags,
			   struct vfs_file **ret);

static int open_but_no_new_part(const struct vfs *vfs, const char *path, unsigned int flags,
				struct vfs_file **ret)
{
	bool is_new_part = strstr(path, "/part-") && flags & VFS_CREATE;

	return is_new_part ? -ENOSPC : open_on_disk(vfs, path, flags, ret);
}

/* What is small, as the manifest's edits are, still fits. */
static void a_disk_too_full_for_a_part_gets_room_by_retention(void **state)
{
	struct world world;
	struct vfs *disk;
	struct err err;

	(void)state;
	begin(&world, 0);
	store_close(world.store);
	world.options.retention_ns = 3600 * CLOCK_NS_PER_S;
	must(store_open(&world.options, &world.store, &err), &err);
	append_parts(&world, 0, 2);
	disk = (struct vfs *)(uintptr_t)world.options.vfs;
	open_on_disk = disk->open;
	disk->open = open_but_no_new_part;
	world.now_ns += 7200 * CLOCK_NS_PER_S;
	append(&world, 7200);
	assert_int_equal(store_seal(world.store, &err), -ERR_NO_SPACE);
	assert_non_null(strstr(err.message, "write a part"));
	assert_int_equal(parts_of(&world), 0);
	disk->open = open_on_disk;
	must(store_seal(world.store, &err), &err);
	assert_int_equal(parts_of(&world), 1);
	end(&world);
}

/* How often what is written to stderr has a text. */
static unsigned count_told(FILE *log, const char *text)
{
	char line[1024];
	unsigned count = 0;

	rewind(log);
	while (fgets(line, sizeof(line), log))
		count += strstr(line, text) != NULL;
	return count;
}

static int open_nothing_new(const struct vfs *vfs, const char *path, unsigned int flags,
			    struct vfs_file **ret)
{
	return flags & VFS_CREATE ? -ENOSPC : open_on_disk(vfs, path, flags, ret);
}

/* It looks each second for hours. */
static void what_a_full_disk_prevents_is_told_once_a_minute(void **state)
{
	int real_stderr = dup(STDERR_FILENO);
	FILE *log = tmpfile();
	struct world world;
	struct vfs *disk;
	struct err err;

	(void)state;
	begin(&world, 0);
	store_close(world.store);
	world.options.seal_age_ns = CLOCK_NS_PER_S;
	must(store_open(&world.options, &world.store, &err), &err);
	append(&world, 0);
	disk = (struct vfs *)(uintptr_t)world.options.vfs;
	open_on_disk = disk->open;
	disk->open = open_nothing_new;
	dup2(fileno(log), STDERR_FILENO);
	for (unsigned second = 0; second < 180; second++) {
		world.now_ns += CLOCK_NS_PER_S;
		assert_int_equal(store_tick(world.store, &err), -ERR_NO_SPACE);
	}
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	assert_int_equal(count_told(log, "background work failed"), 3);
	assert_in_range(count_told(log, ""), 3, 6); /* the log's next segment besides */
	fclose(log);
	disk->open = open_on_disk;
	must(store_tick(world.store, &err), &err);
	assert_int_equal(parts_of(&world), 1);
	end(&world);
}

static void full_disk_is_seen_when_the_store_is_opened(void **state)
{
	struct append_result result;
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 100 * MB);
	append(&world, 0);
	store_close(world.store);
	sim_disk_set_free(world.disk, MB);
	must(store_open(&world.options, &world.store, &err), &err);
	assert_int_equal(batches_append(world.store, 1, &result, &err), -ERR_NO_SPACE);
	assert_int_equal(count_found(world.store, 1), 1);
	end(&world);
}

/* Opens the copy as a store of its own and counts what it has. */
static uint32_t count_in_copy(struct world *world, uint32_t reports)
{
	struct store_options options = world->options;
	struct strbuf report = { 0 };
	struct store *store;
	uint32_t count;
	struct err err;

	options.path = COPY;
	if (store_verify(COPY, options.vfs, &report, &err))
		fail_msg("%s: %s", err.message, strbuf_text(&report));
	strbuf_free(&report);
	must(store_open(&options, &store, &err), &err);
	count = count_found(store, reports);
	store_close(store);
	return count;
}

static void backup_of_a_running_store_opens_with_all_that_was_acknowledged(void **state)
{
	struct store_backup result;
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 0);
	for (uint32_t n = 0; n < 9; n++) {
		append(&world, n);
		if (n % 3 == 2 && n < 8)
			must(store_seal(world.store, &err), &err);
	}
	must(store_backup(DIR, COPY, world.options.vfs, &result, &err), &err);
	assert_int_equal(result.parts, 2);
	assert_int_equal(result.linked, 2);
	assert_true(result.bytes_linked > 0 && result.bytes_copied > 0);
	append(&world, 9);
	assert_int_equal(count_in_copy(&world, 10), 9);
	store_close(world.store);
	sim_disk_restart(world.disk, SIM_LOSE_ALL); /* the backup had been made durable */
	assert_int_equal(count_in_copy(&world, 10), 9);
	sim_disk_free(world.disk);
}

static void backup_does_not_follow_the_store_it_was_made_of(void **state)
{
	struct store_backup result;
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 0);
	append(&world, 0);
	must(store_seal(world.store, &err), &err);
	must(store_backup(DIR, COPY, world.options.vfs, &result, &err), &err);
	store_close(world.store);
	world.options.retention_ns = CLOCK_NS_PER_S;
	world.now_ns += 3600 * CLOCK_NS_PER_S;
	must(store_open(&world.options, &world.store, &err), &err);
	must(store_tick(world.store, &err), &err);
	assert_int_equal(count_found(world.store, 1), 0); /* dropped by retention here, */
	world.options.retention_ns = 0;
	assert_int_equal(count_in_copy(&world, 1), 1); /* and not there */
	end(&world);
}

static void backup_refuses_a_directory_with_content(void **state)
{
	struct store_backup result;
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 0);
	assert_int_equal(store_backup(DIR, DIR, world.options.vfs, &result, &err), -ERR_EXISTS);
	assert_int_equal(store_backup("/nothing", COPY, world.options.vfs, &result, &err),
			 -ERR_INVALID);
	end(&world);
}

/* The file system, and a store that seals when its directory is about to be listed. */
static struct store *seals_next;

static int list_after_seal(const struct vfs *vfs, const char *path, vfs_name_f *name, void *context)
{
	struct store *store = seals_next;
	struct err err;

	seals_next = NULL;
	if (store)
		must(store_seal(store, &err), &err);
	return vfs_posix.list_dir(vfs, path, name, context);
}

static void remove_folder(const char *path)
{
	struct layout_list list;

	assert_int_equal(layout_list(&vfs_posix, path, &list, NULL), 0);
	for (size_t i = 0; i < list.count; i++)
		unlink(layout_join(path, list.entries[i].text).text);
	free(list.entries);
	assert_int_equal(rmdir(path), 0);
}

static void backup_begins_again_when_the_log_goes_on_meanwhile(void **state)
{
	char folder[] = "/tmp/firn-backup-XXXXXX", from[64], to[64];
	struct vfs vfs = vfs_posix;
	struct store_backup result;
	struct world world;
	struct err err;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(from, sizeof(from), "%s/from", folder);
	snprintf(to, sizeof(to), "%s/to", folder);
	begin(&world, 0);
	store_close(world.store);
	world.options.path = from;
	world.options.vfs = &vfs_posix;
	must(store_open(&world.options, &world.store, &err), &err);
	append(&world, 0);
	vfs.list_dir = list_after_seal;
	seals_next = world.store; /* behind the manifest, before the list of files */
	must(store_backup(from, to, &vfs, &result, &err), &err);
	assert_null(seals_next);
	store_close(world.store);
	world.options.path = to;
	must(store_open(&world.options, &world.store, &err), &err);
	assert_int_equal(count_found(world.store, 1), 1);
	end(&world);
	remove_folder(from);
	remove_folder(to);
	assert_int_equal(rmdir(folder), 0);
}

/* A backup that was cut off does not open, or is whole; the store never notices. */
static void backup_cut_off_at_any_step_is_no_store(void **state)
{
	uint64_t hit = 1;

	(void)state;
	for (uint64_t k = 1; hit; k++) {
		struct store_options options;
		struct store_backup result;
		struct world world;
		struct store *copy;
		struct err err;

		begin(&world, 0);
		for (uint32_t n = 0; n < 4; n++)
			append(&world, n);
		must(store_seal(world.store, &err), &err);
		append(&world, 4);
		sim_disk_plan(world.disk, SIM_STOP, k, 0);
		may_fail(store_backup(DIR, COPY, world.options.vfs, &result, NULL));
		hit = sim_disk_hit(world.disk);
		store_close(world.store);
		sim_disk_restart(world.disk, SIM_LOSE_RANDOM);
		options = world.options;
		options.path = COPY;
		options.read_only = true;
		if (!store_open(&options, &copy, &err)) {
			assert_int_equal(count_found(copy, 5), 5);
			store_close(copy);
		}
		must(store_open(&world.options, &world.store, &err), &err);
		assert_int_equal(count_found(world.store, 5), 5);
		end(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_short_runs_do_not_make_the_log_long),
		cmocka_unit_test(appends_stop_before_the_disk_is_full_and_go_on_when_it_is_not),
		cmocka_unit_test(what_cannot_be_compacted_does_not_keep_others_from_it),
		cmocka_unit_test(a_disk_too_full_for_a_part_gets_room_by_retention),
		cmocka_unit_test(full_disk_is_seen_when_the_store_is_opened),
		cmocka_unit_test(what_a_full_disk_prevents_is_told_once_a_minute),
		cmocka_unit_test(backup_of_a_running_store_opens_with_all_that_was_acknowledged),
		cmocka_unit_test(backup_does_not_follow_the_store_it_was_made_of),
		cmocka_unit_test(backup_refuses_a_directory_with_content),
		cmocka_unit_test(backup_begins_again_when_the_log_goes_on_meanwhile),
		cmocka_unit_test(backup_cut_off_at_any_step_is_no_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
