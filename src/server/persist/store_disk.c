/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_disk - the store in a directory: its engine, and what all parts of it share: the clock,
 * whether it may be written, memtables.
 */
#include <assert.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/persist/store_int.h"

const struct store_engine store_disk_engine = {
	.append = store_disk_append,
	.takes_appends = store_disk_takes_appends,
	.snapshot = store_disk_snapshot,
	.snapshot_release = store_disk_snapshot_release,
	.stat = store_disk_stat,
	.bucket_stat = store_disk_bucket_stat,
	.delete_reports = store_disk_delete,
	.deletes = store_disk_deletes,
	.tick = store_disk_tick,
	.close = store_disk_close,
};

int64_t store_now_ns(const struct store_disk *store)
{
	int64_t now = store->options.clock ? store->options.clock(store->options.clock_context)
					   : clock_real_ns();

	return now > 0 ? now : 0;
}

void store_poison(struct store_disk *store, const struct err *err)
{
	bool first;

	lock_take(&store->lock);
	first = !store->poisoned;
	store->poisoned = true;
	if (first)
		store->poison_reason = *err;
	lock_give(&store->lock);
	metric_set(&store_poisoned, 1);
	if (first)
		log_error("store", "a write failed: no more appends until a restart",
			  "path=\"%s\" error=\"%s\"", store->path, err->message);
}

int store_check_writable(struct store_disk *store, struct err *err)
{
	int rc = 0;

	if (store->options.read_only)
		return err_set(err, ERR_READ_ONLY, "store \"%s\" was opened read-only",
			       store->path);
	lock_take(&store->lock);
	if (store->poisoned)
		rc = err_set(err, ERR_READ_ONLY,
			     "store \"%.200s\" takes no writes until a restart, after: %.250s",
			     store->path, store->poison_reason.message);
	lock_give(&store->lock);
	return rc;
}

/* Freeing takes milliseconds, in which appends would wait for the lock. */
void store_unref_memtable(struct store_disk *store, struct memtable *memtable)
{
	bool last;

	lock_take(&store->lock);
	assert(memtable->references);
	last = !--memtable->references;
	lock_give(&store->lock);
	if (last)
		memtable_free(memtable);
}

void store_note_fault(struct store_disk *store, int rc, const struct err *err)
{
	lock_assert_held(&store->seal_lock);
	if (rc && store->manifest.poisoned)
		store_poison(store, err);
}

void store_check_memtables(const struct store_disk *store)
{
	lock_assert_held(&store->lock);
	assert(store->memtables_count && store->memtables_count <= STORE_MEMTABLES_MAX);
	for (size_t i = 0; i < store->memtables_count; i++) {
		const struct memtable *memtable = store->memtables[i];
		bool is_last = i + 1 == store->memtables_count;

		assert(memtable->references);
		assert(memtable->ended == !is_last);
		assert(is_last || memtable->generation < store->memtables[i + 1]->generation);
	}
}

void store_take_log(struct store_disk *store)
{
	lock_take(&store->commit_lock);
	assert(store->log_owner != lock_thread());
	while (store->log_owner)
		lock_wait(&store->commit_changed, &store->commit_lock);
	store->log_owner = lock_thread();
	lock_give(&store->commit_lock);
}

void store_give_log(struct store_disk *store)
{
	lock_take(&store->commit_lock);
	store_assert_owns_log(store);
	store->log_owner = NULL;
	lock_broadcast(&store->commit_changed);
	lock_give(&store->commit_lock);
}
