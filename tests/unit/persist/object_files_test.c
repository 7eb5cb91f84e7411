/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as files: every byte is the object's, whatever fails, and many threads fetch it once. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/persist/disk/object_files.h"
#include "server/persist/disk/persist_metrics.h"
#include "sim_bucket.h"
#include "sim_disk.h"

#define OBJECTS 3u
#define OBJECT_BYTES (40 * OBJECT_EXTENT_BYTES + 12345)
#define READS 600
#define READ_BYTES_MAX (3 * OBJECT_EXTENT_BYTES)

struct world {
	struct sim_disk *disk;
	struct bucket *bucket;
	struct object_files *files;
	char *bytes[OBJECTS];
};

static void name_of(uint32_t object, char ret[32])
{
	snprintf(ret, 32, "s3://b/part-%u", object);
}

static void begin_with(struct world *world, uint64_t cache_bytes)
{
	struct err err;

	*world = (struct world){ .disk = sim_disk_new(1), .bucket = sim_bucket_new() };
	assert_int_equal(sim_disk_vfs(world->disk)->mkdir(sim_disk_vfs(world->disk), "/cache"), 0);
	if (object_files_open(sim_disk_vfs(world->disk), "/cache", cache_bytes, &world->files,
			      &err))
		fail_msg("%s", err.message);
	for (uint32_t i = 0; i < OBJECTS; i++) {
		char name[32];

		world->bytes[i] = mem_realloc(NULL, OBJECT_BYTES, 1);
		for (size_t at = 0; at < OBJECT_BYTES; at++)
			world->bytes[i][at] = (char)((at * 2654435761u + i * 97) >> 13);
		name_of(i, name);
		assert_int_equal(world->bucket->put(world->bucket, name + strlen("s3://b/"),
						    slice_from(world->bytes[i], OBJECT_BYTES), true,
						    &err),
				 0);
		object_files_add(world->files, world->bucket, name, name + strlen("s3://b/"),
				 OBJECT_BYTES);
	}
}

static void begin(struct world *world)
{
	begin_with(world, 0);
}

static void end(struct world *world)
{
	object_files_close(world->files);
	world->bucket->close(world->bucket);
	for (uint32_t i = 0; i < OBJECTS; i++)
		free(world->bytes[i]);
	sim_disk_free(world->disk);
}

static struct vfs_file *open_object(struct world *world, uint32_t object)
{
	struct vfs_file *file;
	char name[32];

	name_of(object, name);
	assert_int_equal(object_files_vfs(world->files)
				 ->open(object_files_vfs(world->files), name, VFS_READ, &file),
			 0);
	return file;
}

/* Reads all of it, as callers of a vfs do; 0 or -errno. Whatever came is right. */
static int read_and_check(const struct world *world, struct vfs_file *file, uint32_t object,
			  uint64_t offset, size_t len, char *to)
{
	size_t got = 0, want = offset + len < OBJECT_BYTES ? len : OBJECT_BYTES - offset;

	while (got < len) {
		ssize_t done = file->vfs->pread(file, to + got, len - got, offset + got);

		if (done < 0)
			return (int)done;
		if (!done)
			break;
		assert_memory_equal(to + got, world->bytes[object] + offset + got, (size_t)done);
		got += (size_t)done;
	}
	assert_int_equal(got, want);
	return 0;
}

static uint32_t next(uint64_t *random)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*random >> 33);
}

/* The cache holds half of them: extents come and go. */
static void every_byte_is_the_objects(void **state)
{
	char *to = mem_realloc(NULL, READ_BYTES_MAX, 1);
	struct vfs_file *files[OBJECTS];
	uint64_t random = 7;
	struct world world;
	int failures = 0;

	(void)state;
	begin(&world);
	for (uint32_t i = 0; i < OBJECTS; i++)
		files[i] = open_object(&world, i);
	for (int i = 0; i < READS; i++) {
		uint32_t object = next(&random) % OBJECTS;
		uint64_t offset = next(&random) % OBJECT_BYTES;
		size_t len = 1 + next(&random) % READ_BYTES_MAX;

		if (next(&random) % 16 == 0)
			sim_bucket_plan(world.bucket, SIM_BUCKET_REFUSES, 1);
		if (next(&random) % 16 == 0)
			sim_disk_plan(world.disk, SIM_FAIL_ONCE, 1 + next(&random) % 3, EIO);
		failures += read_and_check(&world, files[object], object, offset, len, to) != 0;
		sim_bucket_plan(world.bucket, SIM_BUCKET_WHOLE, 0);
	}
	assert_true(failures > 0 && failures < READS / 8); /* the bucket's, never the cache's */
	assert_true(store_object_cache_hits.value > 0);
	for (uint32_t i = 0; i < OBJECTS; i++)
		vfs_close(files[i]);
	free(to);
	end(&world);
}

struct reader {
	struct world *world;
	uint64_t seed;
};

static void *read_much(void *context)
{
	const struct reader *reader = context;
	char *to = mem_realloc(NULL, READ_BYTES_MAX, 1);
	uint64_t random = reader->seed;

	for (int i = 0; i < 60; i++) {
		uint32_t object = next(&random) % OBJECTS;
		struct vfs_file *file = open_object(reader->world, object);

		assert_int_equal(read_and_check(reader->world, file, object,
						next(&random) % OBJECT_BYTES,
						1 + next(&random) % READ_BYTES_MAX, to),
				 0);
		vfs_close(file);
	}
	free(to);
	return NULL;
}

static void many_threads_read_the_same(void **state)
{
	pthread_t threads[4];
	struct reader readers[4];
	struct world world;

	(void)state;
	begin(&world);
	for (uint64_t i = 0; i < 4; i++) {
		readers[i] = (struct reader){ &world, i + 1 };
		assert_int_equal(pthread_create(&threads[i], NULL, read_much, &readers[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	end(&world);
}

static void what_was_read_is_not_asked_for_again(void **state)
{
	char *to = mem_realloc(NULL, READ_BYTES_MAX, 1);
	struct vfs_file *file;
	struct world world;
	int64_t asked;

	(void)state;
	begin(&world);
	file = open_object(&world, 0);
	asked = store_object_reads.value;
	assert_int_equal(read_and_check(&world, file, 0, 100, 2 * OBJECT_EXTENT_BYTES, to), 0);
	assert_int_equal(store_object_reads.value - asked, 1); /* three neighbours at once */
	sim_bucket_plan(world.bucket, SIM_BUCKET_CUT, 1);
	assert_int_equal(read_and_check(&world, file, 0, 0, READ_BYTES_MAX, to), 0);
	assert_int_equal(read_and_check(&world, file, 0, READ_BYTES_MAX, 1, to), -EIO);
	assert_int_equal(store_object_reads.value - asked, 2);
	vfs_close(file);
	free(to);
	end(&world);
}

static void an_open_file_outlives_its_name(void **state)
{
	struct vfs_file *file, *other;
	const struct vfs *vfs;
	struct world world;
	char name[32], to[64];

	(void)state;
	begin(&world);
	vfs = object_files_vfs(world.files);
	file = open_object(&world, 1);
	name_of(1, name);
	assert_int_equal(vfs->unlink(vfs, name), 0);
	assert_int_equal(vfs->unlink(vfs, name), -ENOENT);
	assert_int_equal(vfs->open(vfs, name, VFS_READ, &other), -ENOENT);
	assert_int_equal(read_and_check(&world, file, 1, OBJECT_BYTES - 30, sizeof(to), to), 0);
	vfs_close(file);
	assert_int_equal(object_files_missing(world.files), 0);
	assert_int_equal(world.bucket->remove(world.bucket, "part-2", NULL), 0);
	name_of(2, name);
	file = open_object(&world, 2);
	assert_int_equal(read_and_check(&world, file, 2, 0, sizeof(to), to), -ENOENT);
	assert_int_equal(object_files_missing(world.files), 1);
	vfs_close(file);
	assert_int_equal(vfs->open(vfs, name, VFS_WRITE, &other), -EROFS);
	end(&world);
}

/* What is announced comes in several requests at once, and who reads it makes none. */
static void what_is_announced_is_fetched_ahead(void **state)
{
	const uint32_t extents = 36, first = 3;
	char *to = mem_realloc(NULL, extents * OBJECT_EXTENT_BYTES, 1);
	struct vfs_file *file;
	struct world world;
	int64_t before;

	(void)state;
	begin_with(&world, 256 * OBJECT_EXTENT_BYTES);
	file = open_object(&world, 0);
	before = store_object_reads.value;
	file->vfs->will_read(file, first * OBJECT_EXTENT_BYTES + 5,
			     (extents - 1) * OBJECT_EXTENT_BYTES);
	file->vfs->will_read(file, 4 * OBJECT_EXTENT_BYTES, 1); /* announced already */
	assert_int_equal(read_and_check(&world, file, 0, first * OBJECT_EXTENT_BYTES,
					extents * OBJECT_EXTENT_BYTES, to),
			 0);
	assert_int_equal(store_object_reads.value - before, 3); /* of 16, 16 and 4 extents */

	/* A failure is told to nobody: who reads it asks again. */
	sim_bucket_plan(world.bucket, SIM_BUCKET_REFUSES, 1);
	file->vfs->will_read(file, 0, 1);
	assert_int_equal(read_and_check(&world, file, 0, 0, 100, to), 0);
	assert_true(sim_bucket_hit(world.bucket));

	/* Nobody reads it: files are closed all the same, and an object goes when its name does. */
	file->vfs->will_read(file, 0, OBJECT_BYTES);
	object_files_vfs(world.files)->unlink(object_files_vfs(world.files), file->path);
	vfs_close(file);
	file = open_object(&world, 1);
	file->vfs->will_read(file, 0, OBJECT_BYTES);
	vfs_close(file);
	free(to);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_announced_is_fetched_ahead),
		cmocka_unit_test(every_byte_is_the_objects),
		cmocka_unit_test(many_threads_read_the_same),
		cmocka_unit_test(what_was_read_is_not_asked_for_again),
		cmocka_unit_test(an_open_file_outlives_its_name),
	};

	log_set(LOG_LEVELS, LOG_LOGFMT); /* failures are the subject here */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
