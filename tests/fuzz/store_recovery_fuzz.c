/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that stopped at any operation and whose files were damaged since: it opens or says why
 * not, and never shows a report that was not made, nor one twice.
 *
 * Input: operation at which the machine stops (2 bytes, 0 = it does not), what it loses (1 byte),
 * then damages of 6 bytes: file, offset (4), bits.
 */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/log.h"
#include "../unit/persist/batches.h"
#include "../unit/persist/sim_disk.h"

#define DIR "/store"
#define REPORTS 10
#define FILES_MAX 64
#define DAMAGES_MAX 32
#define SEED 7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct files {
	char paths[FILES_MAX][128];
	size_t count;
};

static int64_t now_ns = (BATCHES_START_S + 100) * CLOCK_NS_PER_S;

static struct store_options options_of(struct sim_disk *disk)
{
	return (struct store_options){
		.path = DIR,
		.vfs = sim_disk_vfs(disk),
		.clock = batches_clock,
		.clock_context = &now_ns,
		.segment_bytes = 32 * 1024,
		.no_background = true,
	};
}

/* Parts, segments of the log, manifests: of each more than one. */
static void work(struct sim_disk *disk)
{
	struct store_options options = options_of(disk);
	struct append_result result;
	struct store *store;

	if (store_open(&options, &store, NULL))
		return;
	for (uint32_t n = 0; n < REPORTS; n++) {
		may_fail(batches_append(store, n, &result, NULL));
		if (n % 4 == 2)
			may_fail(store_seal(store, NULL));
		else if (n % 4 == 1)
			may_fail(store_tick(store, NULL));
	}
	store_close(store);
}

static void add_file(void *context, const char *name)
{
	struct files *files = context;

	if (files->count < FILES_MAX)
		snprintf(files->paths[files->count++], sizeof(files->paths[0]), DIR "/%s", name);
}

static void damage(struct sim_disk *disk, const uint8_t *script, size_t size)
{
	const struct vfs *vfs = sim_disk_vfs(disk);
	struct files files = { .count = 0 };

	if (vfs->list_dir(vfs, DIR, add_file, &files) || !files.count)
		return;
	for (size_t at = 0; at + 6 <= size && at < 6 * DAMAGES_MAX; at += 6) {
		const char *path = files.paths[script[at] % files.count];
		uint32_t offset;
		uint64_t bytes;

		memcpy(&offset, script + at + 1, sizeof(offset));
		if (sim_disk_has(disk, path, &bytes) && bytes)
			sim_disk_flip(disk, path, offset % bytes, script[at + 5]);
	}
}

/* What is found is as it was made: batches_find ends the program otherwise. */
static void recover(struct sim_disk *disk)
{
	struct store_options options = options_of(disk);
	struct err err = { 0 };
	uint32_t found[REPORTS];
	struct store *store;

	if (store_open(&options, &store, &err)) {
		assert(err.message[0]);
		return;
	}
	batches_find(store, found, REPORTS);
	for (uint32_t n = 0; n < REPORTS; n++)
		assert(found[n] <= 1);
	store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_disk *disk;
	uint16_t stops_at;

	if (size < 3)
		return 0;
	log_set(LOG_ERROR, LOG_LOGFMT);
	disk = sim_disk_new(SEED);
	memcpy(&stops_at, data, sizeof(stops_at));
	if (stops_at)
		sim_disk_plan(disk, SIM_STOP, stops_at, 0);
	work(disk);
	sim_disk_restart(disk, data[2] % 3);
	sim_disk_plan(disk, SIM_NO_FAULT, 0, 0);
	damage(disk, data + 3, size - 3);
	recover(disk);
	recover(disk); /* what the first one did to the disk */
	sim_disk_free(disk);
	return 0;
}
