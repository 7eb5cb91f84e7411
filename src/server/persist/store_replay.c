/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/store_replay.h"

#include <assert.h>

#include "base/lock.h"
#include "base/mem.h"
#include "server/persist/disk/persist_locks.h"

#define DECODED_BYTES_MAX ((size_t)32 << 20) /* batches that wait as they were judged */

struct job {
	struct slice payload;
	struct tables_image batch; /* or empty: to be decoded again */
	struct memtable_verdict verdict;
};

struct store_replay {
	struct memtable *memtable;
	size_t bytes_max;
	pthread_t thread;
	bool runs; /* else the caller does the work */
	bool left_out;
	struct strbuf *kept;
	size_t kept_count, kept_capacity;
	struct lock lock;
	struct lock_condition changed;
	/* Guarded by lock: */
	struct job *jobs;
	size_t jobs_count, jobs_capacity, taken, done;
	size_t decoded_bytes; /* of the batches that wait */
	bool ending, cancelled;
};

static void free_job(struct job *job)
{
	tables_image_free(&job->batch);
	free(job->verdict.outcomes);
}

static void store_job(struct store_replay *replay, struct job *job)
{
	struct append_result result = { 0 };
	struct memtable_window window;
	int rc;

	if (memtable_bytes(replay->memtable) > replay->bytes_max) {
		replay->left_out = true;
	} else {
		if (!job->batch.bytes) {
			rc = memtable_decode_batch(job->payload, &window, &job->batch, NULL);
			assert(!rc);
		}
		memtable_store(replay->memtable, NULL, &job->batch.view, &job->verdict, &result);
	}
	free_job(job);
}

static void *run(void *context)
{
	struct store_replay *replay = context;

	lock_take(&replay->lock);
	for (;;) {
		struct job job;
		bool cancelled;

		while (replay->taken == replay->jobs_count && !replay->ending)
			lock_wait(&replay->changed, &replay->lock);
		if (replay->taken == replay->jobs_count)
			break;
		assert(replay->taken < replay->jobs_count);
		job = replay->jobs[replay->taken++];
		assert(replay->decoded_bytes >= job.batch.bytes);
		replay->decoded_bytes -= job.batch.bytes;
		cancelled = replay->cancelled;
		lock_give(&replay->lock);
		if (cancelled)
			free_job(&job);
		else
			store_job(replay, &job);
		lock_take(&replay->lock);
		replay->done++;
		lock_broadcast(&replay->changed);
	}
	lock_give(&replay->lock);
	return NULL;
}

struct store_replay *store_replay_new(struct memtable *memtable, size_t bytes_max)
{
	struct store_replay *replay = mem_new(struct store_replay);

	replay->memtable = memtable;
	replay->bytes_max = bytes_max;
	lock_init(&replay->lock, "store.replay", STORE_REPLAY_RANK);
	lock_condition_init(&replay->changed);
	replay->runs = !pthread_create(&replay->thread, NULL, run, replay);
	return replay;
}

void store_replay_keep(struct store_replay *replay, struct strbuf *bytes)
{
	mem_grow(replay->kept, replay->kept_count, replay->kept_capacity);
	replay->kept[replay->kept_count++] = *bytes;
	*bytes = (struct strbuf){ 0 };
}

void store_replay_give(struct store_replay *replay, struct slice payload,
		       struct tables_image *batch, const struct memtable_verdict *verdict)
{
	struct job job = { payload, *batch, *verdict };

	*batch = (struct tables_image){ 0 };
	if (!replay->runs) {
		store_job(replay, &job);
		return;
	}
	lock_take(&replay->lock);
	assert(!replay->ending);
	if (replay->decoded_bytes + job.batch.bytes > DECODED_BYTES_MAX)
		tables_image_free(&job.batch);
	replay->decoded_bytes += job.batch.bytes;
	mem_grow(replay->jobs, replay->jobs_count, replay->jobs_capacity);
	replay->jobs[replay->jobs_count++] = job;
	lock_broadcast(&replay->changed);
	lock_give(&replay->lock);
}

void store_replay_wait(struct store_replay *replay)
{
	lock_take(&replay->lock);
	while (replay->done < replay->jobs_count)
		lock_wait(&replay->changed, &replay->lock);
	lock_give(&replay->lock);
}

void store_replay_cancel(struct store_replay *replay)
{
	lock_take(&replay->lock);
	replay->cancelled = true;
	lock_give(&replay->lock);
}

bool store_replay_end(struct store_replay *replay)
{
	bool whole;

	lock_take(&replay->lock);
	replay->ending = true;
	lock_broadcast(&replay->changed);
	lock_give(&replay->lock);
	if (replay->runs)
		pthread_join(replay->thread, NULL);
	assert(replay->taken == replay->jobs_count && replay->done == replay->jobs_count);
	whole = !replay->left_out;
	for (size_t i = 0; i < replay->kept_count; i++)
		strbuf_free(&replay->kept[i]);
	free(replay->kept);
	free(replay->jobs);
	lock_free(&replay->lock);
	lock_condition_free(&replay->changed);
	free(replay);
	return whole;
}
