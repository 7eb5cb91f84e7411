/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_int - the inside of the store on disk; only for store*.c.
 *
 * Who guards what, in the order in which locks are taken:
 *
 *   compact_lock one thread at a time compacts or scrubs
 *   seal_lock    one thread at a time turns memtables into parts and edits the manifest
 *   log turn     `log_owner`: one thread at a time owns the log and the ledger (append, rotate)
 *   commit_lock  the queue of appends, log_owner, in_flight_bytes
 *   lock         the list of memtables and their tables (writing), poison
 *   cache.lock   the parts
 *
 * A memtable is active (last in the list, written by the owner of the log turn) until its
 * generation ends; then it is immutable, and waits to become a part. The swap from memtable to
 * part happens under `lock`, so a snapshot sees exactly one of the two.
 */
#ifndef FIRN_SERVER_PERSIST_STORE_INT_H
#define FIRN_SERVER_PERSIST_STORE_INT_H

#include <assert.h>

#include "server/persist/disk/persist_locks.h"
#include "server/persist/manifest/manifest.h"
#include "server/persist/batch/memtable.h"
#include "server/persist/part/decode/part_cache.h"
#include "server/persist/store_engine.h"
#include "server/persist/disk/persist_metrics.h"
#include "server/persist/disk/throttle.h"
#include "server/persist/manifest/tombstones.h"
#include "server/persist/log/wal.h"

#define STORE_SEAL_BYTES_DEFAULT ((uint64_t)32 << 20)
#define STORE_SEAL_BYTES_MAX ((uint64_t)512 << 20)
#define STORE_SEAL_AGE_NS_DEFAULT (600 * CLOCK_NS_PER_S)
#define STORE_SEAL_AGE_NS_BUCKET (120 * CLOCK_NS_PER_S) /* where what is sealed is safer */
#define STORE_MEMTABLES_MAX 5 /* the active one and those that wait; then appends are refused */
#define STORE_REPLAY_BYTES_MAX                                                                     \
	((size_t)1536 << 20) /* of one generation: far over what appends make */
#define STORE_BATCH_BYTES_MAX ((size_t)128 << 20)
#define STORE_IN_FLIGHT_BYTES_MAX ((size_t)64 << 20) /* or one larger batch alone */
#define STORE_GROUP_BATCHES_MAX 256
#define STORE_TICK_NS CLOCK_NS_PER_S
#define STORE_MAINTAIN_BYTES_PER_S ((uint64_t)64 << 20) /* of compaction */
#define STORE_SCRUB_BYTES_PER_S ((uint64_t)16 << 20)
#define STORE_MAINTAIN_CPU_PERCENT 50u /* likewise, of one core */

/* When a part was last read and found whole. */
struct store_scrubbed {
	uint64_t number;
	int64_t at_ns;
};

/* A part whose compaction failed: it is left out until then, so that the others get on. */
struct store_held_back {
	uint64_t number;
	int64_t until_ns, delay_ns;
};

/* How many distinct series there are, by what they were counted of. */
struct store_counted {
	uint64_t of, series;	/* of: 0 = never */
	int64_t at_ns, took_ns; /* of the monotonic clock */
};

struct pending; /* an append in the queue: store_append.c */

struct store_disk {
	struct store base;	      /* first: store_disk_of */
	struct store_options options; /* defaults filled in; path is ours */
	const struct vfs *vfs;
	char *path;
	struct vfs_file *lock_file;

	struct lock seal_lock;
	struct manifest manifest; /* guarded by seal_lock */
	struct err seal_err;	  /* guarded by lock: why the last seal failed */

	struct lock commit_lock;
	struct lock_condition commit_changed;
	struct pending *queue, **queue_end;
	const void *log_owner; /* lock_thread() of who has the log turn, or NULL */
	size_t in_flight_bytes;
	struct wal wal;		 /* with the log turn */
	struct ledger ledger;	 /* with the log turn */
	struct memtable *active; /* with the log turn; its tables are written under lock besides */

	struct lock lock;
	struct memtable *memtables[STORE_MEMTABLES_MAX + 1]; /* oldest first, the last is active */
	size_t memtables_count;
	bool poisoned;
	struct err poison_reason;
	bool disk_full; /* less is free than the reserve: appends are refused */
	bool log_full;	/* the last append found no room */
	uint64_t disk_free_bytes;

	struct tombstones *tombstones; /* guarded by lock: those in force; NULL before recovery */

	struct part_cache cache;
	struct part **held; /* read-only: pinned from open to close */
	size_t held_count;

	pthread_t background;
	bool background_runs;
	struct lock wake_lock;
	struct lock_condition wake;
	bool wanted, stopping;		     /* guarded by wake_lock */
	int64_t tick_told_ns, ahead_told_ns; /* of its failures; the background thread's */

	struct lock compact_lock; /* one compaction or scrub at a time; before seal_lock */
	pthread_t maintenance;
	bool maintenance_runs;
	struct throttle throttle;	 /* of the maintenance thread */
	struct store_scrubbed *scrubbed; /* by number of part; guarded by compact_lock */
	size_t scrubbed_count;
	struct store_held_back *held_back; /* guarded by compact_lock */
	size_t held_back_count, held_back_capacity;
	uint64_t compact_bytes_max; /* of one job, as memory has shown; 0 = none; compact_lock */
	int64_t opened_ns;
	int64_t tenants_looked_ns;    /* guarded by lock */
	struct store_counted counted; /* guarded by lock */
	struct store_bucket *bucket;  /* store_bucket.c; NULL: there is none */
};

/* The functions of store_engine.h, each in the file of its name without "disk". */
extern const struct store_engine store_disk_engine; /* store_disk.c */

MUST_USE int store_disk_append(struct store *base, const struct tables_view *batch,
			       struct append_result *ret, struct err *err);
MUST_USE int store_disk_takes_appends(struct store *base, struct err *err);
MUST_USE int store_disk_snapshot(struct store *base, const struct store_query *asked,
				 struct store_snapshot *ret, struct err *err);
void store_disk_snapshot_release(struct store *base, struct store_snapshot *snapshot);
MUST_USE int store_disk_stat(struct store *base, struct store_stat *ret, struct err *err);
void store_disk_bucket_stat(struct store *base, struct store_bucket_stat *ret);
MUST_USE int store_disk_delete(struct store *base, const struct store_delete *order,
			       uint64_t *ret_number, struct err *err);
void store_disk_deletes(struct store *base, const struct slice *tenant, struct store_deletes *ret);
int store_disk_tick(struct store *base, struct err *err); /* logs failures */
void store_disk_close(struct store *base);

/* And what only a store on disk does, as store.h and store_admin.h say. */
MUST_USE int store_disk_seal(struct store_disk *store, struct err *err);
MUST_USE int store_disk_compact(struct store_disk *store,
				const struct store_compact_options *options,
				struct store_compacted *ret, struct err *err);
MUST_USE int store_disk_scrub(struct store_disk *store, bool *ret_more, struct err *err);

static inline struct store_disk *store_disk_of(struct store *base)
{
	assert(base->engine == &store_disk_engine);
	return (struct store_disk *)base;
}

/* store_open.c: with nothing in it yet, and no threads. */
struct store_disk *store_disk_new(const struct store_options *options);
void store_disk_free(struct store_disk *store);

int64_t store_now_ns(const struct store_disk *store);

/* store_disk.c: no append from now on. Logs it once. */
void store_poison(struct store_disk *store, const struct err *err);
/* After a failed change of the manifest: poisons the store when it has to. */
void store_note_fault(struct store_disk *store, int rc, const struct err *err);
/* 0, or ERR_READ_ONLY with the reason. */
MUST_USE int store_check_writable(struct store_disk *store, struct err *err);
/* Without `lock`: gives a reference back; frees the memtable with the last one. */
void store_unref_memtable(struct store_disk *store, struct memtable *memtable);
/* The log turn: one at a time writes the log, or begins a generation. */
void store_take_log(struct store_disk *store);
void store_give_log(struct store_disk *store);
/* With `lock`: aborts when the list of memtables contradicts itself. */
void store_check_memtables(const struct store_disk *store);

/* The calling thread has the log turn. */
static inline void store_assert_owns_log(const struct store_disk *store)
{
	assert(store->log_owner == lock_thread());
}

/* store_recover.c: from the directory to memory. `fresh`: there is no store yet, make one. */
MUST_USE int store_recover(struct store_disk *store, bool fresh, struct err *err);

/* store_lock.c */
MUST_USE int store_take_lock(struct store_disk *store, struct err *err);

/*
 * The log is sealed at this fraction of the limit of bytes, and a part is no larger. Retention
 * drops the oldest part, so the bytes kept stay within a tenth of the limit.
 */
#define STORE_LIMIT_SHARE 20

/* store_retention.c: with seal_lock. */
MUST_USE int store_apply_retention(struct store_disk *store, struct err *err);
/* store_tenants.c: without any lock. */
MUST_USE int store_apply_tenant_limits(struct store_disk *store, struct err *err);
void store_watch_disk(struct store_disk *store);
/* 0, or ERR_NO_SPACE while the disk is over its watermark. */
MUST_USE int store_check_space(struct store_disk *store, struct err *err);

/* store_delete.c: with seal_lock. After every change of tombstones or parts. */
MUST_USE int store_load_tombstones(struct store_disk *store, struct err *err);
MUST_USE int store_settle_tombstones(struct store_disk *store, struct err *err);

/*
 * store_compact.c: with compact_lock. One job, if one is due; *ret_done: there was one. The parts
 * of a job that failed are left out for a while: the next call takes another job.
 */
MUST_USE int store_compact_step(struct store_disk *store,
				const struct store_compact_options *options,
				struct throttle *throttle, struct store_compacted *ret,
				bool *ret_done, struct err *err);

/*
 * store_compact.c: without locks. Handles an error of reading a part: damage is logged and the part
 * will be set aside; a missing file is damage too if the manifest names the part. Returns
 * ERR_CORRUPT then, else `rc`.
 */
MUST_USE int store_note_unreadable(struct store_disk *store, uint64_t number, int rc,
				   struct err *err);

/* store_maintain.c: compacts and scrubs while the store is open. */
MUST_USE int store_start_maintenance(struct store_disk *store, struct err *err);
void store_stop_maintenance(struct store_disk *store);

/* store_seal.c: with seal_lock. */
void store_publish_parts(struct store_disk *store);

/* store_seal.c: with the log turn. Whether a new generation may begin (there is room to wait). */
bool store_may_rotate(struct store_disk *store);
void store_rotate(struct store_disk *store);
/* store_seal.c: as store_seal, but the active memtable ends only if it is due. */
MUST_USE int store_seal_due(struct store_disk *store, struct err *err);

/* store_background.c. The first: the segment that the log will need next; without any lock. */
void store_make_log_ahead(struct store_disk *store);
void store_wake_background(struct store_disk *store);
MUST_USE int store_start_background(struct store_disk *store, struct err *err);
void store_stop_background(struct store_disk *store);

#endif
