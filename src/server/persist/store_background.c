/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The background thread: the log's next segment, parts of the memtables that have ended, and the
 * limits of tenants, every second and whenever an append asks for it; and dictionaries of parts
 * that nobody asks about any more.
 */
#include "base/log.h"
#include "server/persist/store_bucket_int.h"
#include "server/persist/store_int.h"

#define AGE_NS                                                                                     \
	(60 * CLOCK_NS_PER_S) /* dictionaries that nobody used for that long are given up          \
			       */
#define LOG_PAUSE_NS (60 * CLOCK_NS_PER_S)

/* What fails each second, as on a full disk, is told once a minute. */
static bool may_tell(const struct store_disk *store, int64_t *told_ns)
{
	int64_t now_ns = store_now_ns(store);

	if (*told_ns && now_ns >= *told_ns && now_ns - *told_ns < LOG_PAUSE_NS)
		return false;
	*told_ns = now_ns;
	return true;
}

void store_make_log_ahead(struct store_disk *store)
{
	struct layout_name name;
	struct vfs_file *file = NULL;
	struct err err = { 0 };
	bool is_mine;

	if (store_check_writable(store, &err))
		return;
	store_take_log(store);
	is_mine = wal_claim_ahead(&store->wal, &name);
	store_give_log(store);
	if (!is_mine)
		return;
	if (wal_make_ahead(&store->wal, name, &file, &err) &&
	    may_tell(store, &store->ahead_told_ns))
		log_warn("store",
			 "cannot prepare the next log segment: appends will wait for it; "
			 "logged once a minute",
			 "error=\"%s\"", err.message);
	store_take_log(store);
	wal_give_ahead(&store->wal, name, file);
	store_give_log(store);
}

static int work(struct store_disk *store, struct err *err)
{
	int rc;

	assert(!store->options.read_only);
	store_make_log_ahead(store);
	store_bucket_publish(store);
	rc = store_seal_due(store, err);
	if (rc)
		return rc;
	rc = store_apply_tenant_limits(store, err);
	return rc ? (err_wrap(err, "apply the limits of tenants"), rc) : 0;
}

int store_disk_tick(struct store *base, struct err *err)
{
	struct store_disk *store = store_disk_of(base);
	struct err cause = { 0 };
	int rc = work(store, &cause);

	if (rc && rc != -ERR_READ_ONLY && may_tell(store, &store->tick_told_ns))
		log_error("store",
			  "background work failed; it is retried every second, "
			  "logged once a minute",
			  "error=\"%s\"", cause.message);
	if (rc && err)
		*err = cause;
	return rc;
}

static void *run(void *context)
{
	struct store_disk *store = context;
	int64_t aged_ns = clock_monotonic_ns();

	pthread_setname_np(pthread_self(), "firn-seal");
	lock_take(&store->wake_lock);
	while (!store->stopping) {
		if (!store->wanted)
			lock_wait_until(&store->wake, &store->wake_lock,
					clock_monotonic_ns() + STORE_TICK_NS);
		store->wanted = false;
		if (store->stopping)
			break;
		lock_give(&store->wake_lock);
		if (clock_monotonic_ns() - aged_ns >= AGE_NS) {
			aged_ns = clock_monotonic_ns();
			part_cache_age(&store->cache);
		}
		store_disk_tick(&store->base, NULL);
		lock_take(&store->wake_lock);
	}
	lock_give(&store->wake_lock);
	return NULL;
}

void store_wake_background(struct store_disk *store)
{
	lock_take(&store->wake_lock);
	store->wanted = true;
	lock_signal(&store->wake);
	lock_give(&store->wake_lock);
}

int store_start_background(struct store_disk *store, struct err *err)
{
	int rc;

	assert(!store->background_runs && !store->stopping);
	store->wanted =
		true; /* what was read back may be due: whoever dies soon has no second to wait */
	rc = pthread_create(&store->background, NULL, run, store);
	if (rc)
		return err_set_errno(err, rc, "start the thread that writes parts");
	store->background_runs = true;
	return 0;
}

void store_stop_background(struct store_disk *store)
{
	if (!store->background_runs)
		return;
	lock_take(&store->wake_lock);
	store->stopping = true;
	lock_signal(&store->wake);
	lock_give(&store->wake_lock);
	pthread_join(store->background, NULL);
	store->background_runs = false;
}
