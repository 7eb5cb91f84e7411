/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest by itself: numbers, replacing parts, tombstones, and a cut at every I/O step. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "server/persist/manifest/manifest.h"
#include "sim_disk.h"

#define DIR "/store"

static struct part_info part_of(uint64_t number)
{
	return (struct part_info){
		.number = number,
		.bytes = 100 * number,
		.min_start_ns = -5,
		.max_start_ns = (int64_t)number,
		.rows = 7,
		.reports = 3,
		.bytes_rollups = 9,
		.hash = { number, ~number },
		.tier = PART_HOURS,
		.deleted_to = number / 2,
	};
}

static void must(int rc, const struct err *err)
{
	if (rc)
		fail_msg("%s", err->message);
}

static void begin(struct manifest *manifest, struct sim_disk *disk)
{
	struct manifest_edit edit = { 0 };
	struct err err;

	sim_disk_vfs(disk)->mkdir(sim_disk_vfs(disk), DIR);
	manifest_init(manifest, sim_disk_vfs(disk), DIR);
	manifest_edit_log_from(&edit, 1, (struct wal_position){ 0 }, 0);
	must(manifest_commit(manifest, &edit, &err), &err);
	manifest_edit_free(&edit);
}

static void add(struct manifest *manifest, uint64_t number)
{
	struct part_info info = part_of(number);
	struct manifest_edit edit = { 0 };
	struct err err;

	manifest_edit_add_part(&edit, &info);
	must(manifest_commit(manifest, &edit, &err), &err);
	manifest_edit_free(&edit);
}

/* Two parts become one, as compaction does it. */
static int replace(struct manifest *manifest, uint64_t first, uint64_t second, uint64_t by)
{
	struct part_info info = part_of(by);
	struct manifest_edit edit = { 0 };
	int rc;

	manifest_edit_drop_part(&edit, first);
	manifest_edit_drop_part(&edit, second);
	manifest_edit_add_part(&edit, &info);
	rc = manifest_commit(manifest, &edit, NULL);
	manifest_edit_free(&edit);
	return rc;
}

static int add_tombstone(struct manifest *manifest, uint64_t number)
{
	struct manifest_tombstone tombstone = {
		.number = number,
		.from_ns = INT64_MIN,
		.to_ns = INT64_MAX,
		.created_ns = 12,
		.by = "someone at 10.0.0.1",
		.selector = "{comm=\"a\"}",
	};
	struct manifest_edit edit = { 0 };
	int rc;

	manifest_edit_add_tombstone(&edit, &tombstone);
	rc = manifest_commit(manifest, &edit, NULL);
	manifest_edit_free(&edit);
	return rc;
}

static void reload(struct manifest *manifest, struct sim_disk *disk)
{
	struct err err;

	manifest_fini(manifest);
	must(manifest_load(manifest, sim_disk_vfs(disk), DIR, true, &err), &err);
}

/* By what would be written of them. */
static void check_equal(const struct part_info *found, const struct part_info *expected)
{
	struct manifest_edit a = { 0 }, b = { 0 };

	manifest_edit_add_part(&a, found);
	manifest_edit_add_part(&b, expected);
	assert_int_equal(a.items.len, b.items.len);
	assert_memory_equal(a.items.data, b.items.data, a.items.len);
	assert_int_equal(found->damaged, expected->damaged);
	manifest_edit_free(&a);
	manifest_edit_free(&b);
}

static void manifest_keeps_every_field_of_parts_in_order_of_number(void **state)
{
	struct sim_disk *disk = sim_disk_new(1);
	struct manifest manifest;

	(void)state;
	begin(&manifest, disk);
	add(&manifest, 2);
	add(&manifest, 7);
	add(&manifest, 4); /* was begun before 7 */
	reload(&manifest, disk);
	assert_int_equal(manifest.state.parts_count, 3);
	for (size_t i = 0; i < 3; i++) {
		static const uint64_t numbers[] = { 2, 4, 7 };
		struct part_info expected = part_of(numbers[i]);

		check_equal(&manifest.state.parts[i], &expected);
	}
	manifest_fini(&manifest);
	sim_disk_free(disk);
}

static void numbers_are_never_given_twice(void **state)
{
	struct sim_disk *disk = sim_disk_new(1);
	struct manifest manifest;
	struct manifest_edit edit = { 0 };
	struct err err;

	(void)state;
	begin(&manifest, disk);
	assert_int_equal(manifest_take_number(&manifest), 1);
	assert_int_equal(manifest_take_number(&manifest), 2);
	add(&manifest, 2);
	manifest_edit_drop_part(&edit, 2);
	must(manifest_commit(&manifest, &edit, &err), &err);
	manifest_edit_free(&edit);
	/* Two rewrites of the file: the first has the edits, the second the state alone. */
	for (int i = 0; i < 2; i++) {
		reload(&manifest, disk);
		assert_int_equal(add_tombstone(&manifest, 3 + (uint64_t)i), 0);
	}
	reload(&manifest, disk);
	assert_int_equal(manifest_take_number(&manifest), 5);
	manifest_fini(&manifest);
	sim_disk_free(disk);
}

static void tombstones_are_kept_until_dropped(void **state)
{
	struct sim_disk *disk = sim_disk_new(1);
	struct manifest_edit edit = { 0 };
	struct manifest manifest;
	struct err err;

	(void)state;
	begin(&manifest, disk);
	add(&manifest, 1);
	assert_int_equal(add_tombstone(&manifest, 2), 0);
	assert_int_equal(add_tombstone(&manifest, 3), 0);
	manifest_edit_deleted_to(&edit, 1, 2);
	manifest_edit_tombstone_done(&edit, 2, 99);
	must(manifest_commit(&manifest, &edit, &err), &err);
	manifest_edit_free(&edit);
	for (int i = 0; i < 2; i++) {
		reload(&manifest, disk);
		assert_int_equal(manifest.state.tombstones_count, 2);
		assert_string_equal(manifest.state.tombstones[0].selector, "{comm=\"a\"}");
		assert_string_equal(manifest.state.tombstones[0].by, "someone at 10.0.0.1");
		assert_true(manifest.state.tombstones[0].from_ns == INT64_MIN);
		assert_true(manifest.state.tombstones[0].to_ns == INT64_MAX);
		assert_int_equal(manifest.state.tombstones[0].created_ns, 12);
		assert_int_equal(manifest.state.tombstones[0].done_ns, 99);
		assert_int_equal(manifest.state.tombstones[1].done_ns, 0);
		assert_int_equal(manifest.state.parts[0].deleted_to, 2);
		add(&manifest, 10 + (uint64_t)i); /* a new file begins with the whole state */
	}
	manifest_edit_drop_tombstone(&edit, 2);
	must(manifest_commit(&manifest, &edit, &err), &err);
	manifest_edit_free(&edit);
	reload(&manifest, disk);
	assert_int_equal(manifest.state.tombstones_count, 1);
	assert_int_equal(manifest.state.tombstones[0].number, 3);
	manifest_fini(&manifest);
	sim_disk_free(disk);
}

static void oversized_edit_is_refused_and_changes_nothing(void **state)
{
	struct sim_disk *disk = sim_disk_new(1);
	struct manifest_edit edit = { 0 };
	struct manifest manifest;
	struct err err;

	(void)state;
	begin(&manifest, disk);
	add(&manifest, 1);
	for (uint64_t i = 0; i < 200; i++) {
		struct part_info info = part_of(10 + i);

		info.hash = (struct identity){ UINT64_MAX, UINT64_MAX };
		info.bytes = info.rows = info.reports = info.series = info.stacks = UINT64_MAX;
		info.bytes_samples = info.bytes_stacks = info.bytes_symbols = UINT64_MAX;
		manifest_edit_add_part(&edit, &info);
	}
	assert_int_equal(manifest_commit(&manifest, &edit, &err), -ERR_LIMIT);
	manifest_edit_free(&edit);
	reload(&manifest, disk);
	assert_int_equal(manifest.state.parts_count, 1);
	manifest_fini(&manifest);
	sim_disk_free(disk);
}

/* What a loaded manifest says of the replacement: 0 before, 1 after. Anything else fails. */
static int check_replacement(const struct manifest_state *state)
{
	if (state->parts_count == 1) {
		assert_int_equal(state->parts[0].number, 3);
		return 1;
	}
	assert_int_equal(state->parts_count, 2);
	assert_int_equal(state->parts[0].number, 1);
	assert_int_equal(state->parts[1].number, 2);
	return 0;
}

static bool cut_replacement_at(uint64_t k, enum sim_loss loss, bool rewrite)
{
	struct sim_disk *disk = sim_disk_new(k * 3 + loss);
	struct manifest manifest;
	bool done, hit;
	struct err err;

	begin(&manifest, disk);
	add(&manifest, 1);
	add(&manifest, 2);
	if (rewrite)
		reload(&manifest, disk); /* the next commit begins a new file */
	sim_disk_plan(disk, SIM_STOP, k, 0);
	done = !replace(&manifest, 1, 2, 3) && !add_tombstone(&manifest, 4);
	hit = sim_disk_hit(disk);
	manifest_fini(&manifest);
	sim_disk_restart(disk, loss);
	must(manifest_load(&manifest, sim_disk_vfs(disk), DIR, true, &err), &err);
	if (done)
		assert_int_equal(manifest.state.tombstones_count, 1);
	if (!check_replacement(&manifest.state)) {
		assert_false(done);
		assert_int_equal(replace(&manifest, 1, 2, 3), 0); /* it can be done again */
	}
	manifest_fini(&manifest);
	sim_disk_free(disk);
	return hit;
}

static void replacement_is_all_or_nothing_at_every_step(void **state)
{
	(void)state;
	for (int loss = SIM_LOSE_ALL; loss <= SIM_LOSE_RANDOM; loss++)
		for (int rewrite = 0; rewrite < 2; rewrite++)
			for (uint64_t k = 1; cut_replacement_at(k, (enum sim_loss)loss, rewrite);)
				k++;
}

/* Who is told that an edit failed removes the part that it names: it must not be in force. */
static bool fail_replacement_at(uint64_t k, int error)
{
	struct sim_disk *disk = sim_disk_new(k);
	struct manifest manifest, found = { 0 };
	struct err err;
	bool hit;
	int rc;

	begin(&manifest, disk);
	add(&manifest, 1);
	add(&manifest, 2);
	reload(&manifest, disk); /* the next commit begins a new file */
	sim_disk_plan(disk, SIM_FAIL_ONCE, k, error);
	rc = replace(&manifest, 1, 2, 3);
	hit = sim_disk_hit(disk);
	sim_disk_plan(disk, SIM_NO_FAULT, 0, 0);
	must(manifest_load(&found, sim_disk_vfs(disk), DIR, true, &err), &err);
	if (!rc)
		assert_int_equal(check_replacement(&found.state), 1);
	else if (!manifest.poisoned)
		assert_int_equal(check_replacement(&found.state), 0);
	assert_int_equal(check_replacement(&manifest.state), !rc);
	if (!manifest.poisoned)
		must(add_tombstone(&manifest, 4), &err); /* and it goes on */
	manifest_fini(&found);
	manifest_fini(&manifest);
	sim_disk_free(disk);
	return hit;
}

static void a_failed_edit_is_not_in_force(void **state)
{
	const int errors[] = { EMFILE, ENOMEM, ENOSPC, EIO };

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		for (uint64_t k = 1; fail_replacement_at(k, errors[i]);)
			k++;
}

static void older_format_is_refused_with_what_to_do(void **state)
{
	struct sim_disk *disk = sim_disk_new(1);
	struct strbuf bytes = { 0 };
	struct manifest manifest;
	struct manifest_state decoded;
	struct err err;

	(void)state;
	begin(&manifest, disk);
	manifest_fini(&manifest);
	must(vfs_read_whole(sim_disk_vfs(disk), DIR "/MANIFEST-000001", 4096, &bytes, &err), &err);
	bytes.data[8] = 1;
	memcpy(bytes.data + 12, "\x7c\x68\x87\x21", 4); /* the checksum of version 1's header */
	assert_int_equal(manifest_decode(strbuf_slice(&bytes), &decoded, &err), -ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "format version 1"));
	assert_non_null(strstr(err.message, "--storage-path"));
	strbuf_free(&bytes);
	sim_disk_free(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(manifest_keeps_every_field_of_parts_in_order_of_number),
		cmocka_unit_test(numbers_are_never_given_twice),
		cmocka_unit_test(tombstones_are_kept_until_dropped),
		cmocka_unit_test(oversized_edit_is_refused_and_changes_nothing),
		cmocka_unit_test(replacement_is_all_or_nothing_at_every_step),
		cmocka_unit_test(a_failed_edit_is_not_in_force),
		cmocka_unit_test(older_format_is_refused_with_what_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
