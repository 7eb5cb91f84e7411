/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a running store does by itself, in a thread of low priority and within a budget: compact
 * what is due, then look at the part that was not looked at for the longest time.
 */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "server/persist/store_int.h"

#define INTERVAL_NS (10 * CLOCK_NS_PER_S)
#define RETRY_NS (60 * CLOCK_NS_PER_S)
#define NICE 15
#define IO_CLASS_BEST_EFFORT_LOWEST ((2 << 13) | 7)
#define IO_WHO_PROCESS 1

/* Hints both: where they are refused, the budget is what counts. */
static void lower_priority(void)
{
	pid_t thread = (pid_t)syscall(SYS_gettid);

	setpriority(PRIO_PROCESS, (id_t)thread, NICE);
	syscall(SYS_ioprio_set, IO_WHO_PROCESS, thread, IO_CLASS_BEST_EFFORT_LOWEST);
}

/* Goes on with the next job when one failed of itself: its parts are held back then. */
static bool may_go_on(int rc)
{
	return rc != -ERR_CANCELLED && rc != -ERR_READ_ONLY && rc != -ERR_CORRUPT;
}

static int compact_all(struct store_disk *store, struct err *err)
{
	const struct store_compact_options options = { 0 };
	struct store_compacted compacted = { 0 };
	bool done = true;
	int rc = 0;

	while (done && may_go_on(rc)) {
		lock_take(&store->compact_lock);
		rc = store_compact_step(store, &options, &store->throttle, &compacted, &done, err);
		lock_give(&store->compact_lock);
	}
	return rc;
}

static void *run(void *context)
{
	struct store_disk *store = context;
	char last_error[ERR_MESSAGE_BYTES] = "";
	bool stopped = false;

	pthread_setname_np(pthread_self(), "firn-compact");
	lower_priority();
	while (!stopped) {
		struct err err = { 0 };
		bool more = false;
		int rc;

		/* In turns: a look at all parts of a large store takes hours. */
		do {
			rc = compact_all(store, &err);
			if (!rc)
				rc = store_disk_scrub(store, &more, &err);
		} while (!rc && more);
		if (rc == -ERR_CORRUPT)
			store_wake_background(store); /* sets the part aside */
		if (rc && rc != -ERR_CANCELLED && rc != -ERR_READ_ONLY &&
		    strcmp(last_error, err.message) != 0) {
			memcpy(last_error, err.message, sizeof(last_error));
			log_warn("store", "compaction failed; it will be retried", "error=\"%s\"",
				 err.message);
		}
		stopped = throttle_sleep(&store->throttle, rc ? RETRY_NS : INTERVAL_NS);
	}
	return NULL;
}

int store_start_maintenance(struct store_disk *store, struct err *err)
{
	int rc;

	assert(!store->maintenance_runs && !store->options.read_only);
	store->maintenance_runs = true; /* the thread reads it */
	rc = pthread_create(&store->maintenance, NULL, run, store);
	if (!rc)
		return 0;
	store->maintenance_runs = false;
	return err_set_errno(err, rc, "start the thread that compacts");
}

void store_stop_maintenance(struct store_disk *store)
{
	if (!store->maintenance_runs)
		return;
	throttle_stop(&store->throttle);
	pthread_join(store->maintenance, NULL);
	store->maintenance_runs = false;
}
