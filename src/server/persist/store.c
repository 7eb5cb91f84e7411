/* SPDX-License-Identifier: Apache-2.0 */
/* store - what all parts of an open store share: its clock, whether it may be written, memtables.
 */
#include "server/persist/store.h"

#include <assert.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/persist/store_int.h"

int64_t store_now_ns(const struct store *store)
{
	int64_t now = store->options.clock ? store->options.clock(store->options.clock_context)
					   : clock_real_ns();

	return now > 0 ? now : 0;
}

void store_poison(struct store *store, const struct err *err)
{
	bool first;

	pthread_mutex_lock(&store->lock);
	first = !store->poisoned;
	store->poisoned = true;
	if (first)
		store->poison_reason = *err;
	pthread_mutex_unlock(&store->lock);
	metric_set(&store_poisoned, 1);
	if (first)
		log_error("store", "a write failed: no more appends until a restart",
			  "path=\"%s\" error=\"%s\"", store->path, err->message);
}

int store_check_writable(struct store *store, struct err *err)
{
	int rc = 0;

	if (store->options.read_only)
		return err_set(err, ERR_READ_ONLY, "store \"%s\" was opened read-only",
			       store->path);
	pthread_mutex_lock(&store->lock);
	if (store->poisoned)
		rc = err_set(err, ERR_READ_ONLY,
			     "store \"%.200s\" takes no writes until a restart, after: %.250s",
			     store->path, store->poison_reason.message);
	pthread_mutex_unlock(&store->lock);
	return rc;
}

/* Freeing takes milliseconds, in which appends would wait for the lock. */
void store_unref_memtable(struct store *store, struct memtable *memtable)
{
	bool last;

	pthread_mutex_lock(&store->lock);
	assert(memtable->references);
	last = !--memtable->references;
	pthread_mutex_unlock(&store->lock);
	if (last)
		memtable_free(memtable);
}

void store_note_fault(struct store *store, int rc, const struct err *err)
{
	if (rc && store->manifest.poisoned)
		store_poison(store, err);
}

void store_take_log(struct store *store)
{
	pthread_mutex_lock(&store->commit_lock);
	while (store->log_busy)
		pthread_cond_wait(&store->commit_changed, &store->commit_lock);
	store->log_busy = true;
	pthread_mutex_unlock(&store->commit_lock);
}

void store_give_log(struct store *store)
{
	pthread_mutex_lock(&store->commit_lock);
	assert(store->log_busy);
	store->log_busy = false;
	pthread_cond_broadcast(&store->commit_changed);
	pthread_mutex_unlock(&store->commit_lock);
}
