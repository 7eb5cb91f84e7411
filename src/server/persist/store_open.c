/* SPDX-License-Identifier: Apache-2.0 */
/* store_open - from options to an open store, and back. */
#include <errno.h>
#include <libgen.h>

#include "base/mem.h"
#include "server/persist/store_bucket_int.h"
#include "server/persist/store_int.h"

#define HELD_PARTS_MAX 512u /* open files; more parts are read at their own risk */
#define READ_ONLY_TRIES 5   /* a running server may drop files while we read */

#define SEGMENT_SHARE 32
#define FITTED_BYTES_MIN ((uint64_t)1 << 20)

static void copy_tenant_limits(struct store_disk *store, const struct store_options *options)
{
	size_t count = options->tenant_limits_count;
	struct store_tenant_limit *limits = mem_new_array(struct store_tenant_limit, count);

	for (size_t i = 0; i < count; i++) {
		limits[i] = options->tenant_limits[i];
		limits[i].tenant = mem_strndup(limits[i].tenant, strlen(limits[i].tenant));
	}
	store->options.tenant_limits = limits;
}

/* A small store has a small log: it counts to the limit, and is no part yet. */
static void fit_log(struct store_options *options)
{
	uint64_t seal = options->retention_bytes / STORE_LIMIT_SHARE;
	uint64_t segment = options->retention_bytes / SEGMENT_SHARE;

	if (!options->retention_bytes)
		return;
	seal = seal > FITTED_BYTES_MIN ? seal : FITTED_BYTES_MIN;
	segment = segment > FITTED_BYTES_MIN ? segment : FITTED_BYTES_MIN;
	if (options->seal_bytes > seal)
		options->seal_bytes = seal;
	if (options->segment_bytes > segment)
		options->segment_bytes = segment;
}

struct store_disk *store_disk_new(const struct store_options *options)
{
	struct store_disk *store = mem_new(struct store_disk);

	store->base.engine = &store_disk_engine;
	store->options = *options;
	store->path = mem_strndup(options->path, strlen(options->path));
	store->options.path = store->path;
	copy_tenant_limits(store, options);
	store->vfs = options->vfs ? options->vfs : &vfs_posix;
	if (!store->options.seal_bytes)
		store->options.seal_bytes = STORE_SEAL_BYTES_DEFAULT;
	if (store->options.seal_bytes > STORE_SEAL_BYTES_MAX)
		store->options.seal_bytes = STORE_SEAL_BYTES_MAX;
	if (!store->options.seal_age_ns)
		store->options.seal_age_ns =
			options->bucket ? STORE_SEAL_AGE_NS_BUCKET : STORE_SEAL_AGE_NS_DEFAULT;
	if (!store->options.segment_bytes)
		store->options.segment_bytes = WAL_SEGMENT_BYTES_DEFAULT;
	fit_log(&store->options);
	if (!store->options.cache_bytes)
		store->options.cache_bytes = PART_CACHE_BYTES_DEFAULT;
	assert(store->options.seal_bytes <= STORE_SEAL_BYTES_MAX && store->options.seal_age_ns > 0);
	store->queue_end = &store->queue;
	lock_init(&store->compact_lock, "store.compact", STORE_COMPACT_RANK);
	lock_init(&store->seal_lock, "store.seal", STORE_SEAL_RANK);
	throttle_init(&store->throttle, STORE_MAINTAIN_BYTES_PER_S, STORE_MAINTAIN_CPU_PERCENT);
	lock_init(&store->commit_lock, "store.commit", STORE_COMMIT_RANK);
	lock_init(&store->lock, "store", STORE_RANK);
	lock_init(&store->wake_lock, "store.wake", STORE_WAKE_RANK);
	lock_condition_init(&store->commit_changed);
	lock_condition_init(&store->wake);
	part_cache_init(&store->cache, store->vfs, store->path, store->options.cache_bytes,
			store->options.read_only);
	return store;
}

void store_disk_free(struct store_disk *store)
{
	assert(!store->background_runs && !store->maintenance_runs);
	for (size_t i = 0; i < store->memtables_count; i++)
		store_unref_memtable(store, store->memtables[i]);
	wal_fini(&store->wal);
	ledger_fini(&store->ledger);
	manifest_fini(&store->manifest);
	tombstones_unref(store->tombstones);
	free(store->scrubbed);
	free(store->held_back);
	throttle_fini(&store->throttle);
	lock_free(&store->compact_lock);
	for (size_t i = 0; i < store->held_count; i++)
		part_cache_unpin(&store->cache, store->held[i]);
	free(store->held);
	part_cache_fini(&store->cache);
	vfs_close(store->lock_file);
	lock_free(&store->seal_lock);
	lock_free(&store->commit_lock);
	lock_free(&store->lock);
	lock_free(&store->wake_lock);
	lock_condition_free(&store->commit_changed);
	lock_condition_free(&store->wake);
	free(store->path);
	for (size_t i = 0; i < store->options.tenant_limits_count; i++)
		free((void *)(uintptr_t)store->options.tenant_limits[i].tenant);
	free((void *)(uintptr_t)store->options.tenant_limits);
	free(store);
}

/* What lies at the path. *ret_fresh: nothing yet, or what a first open left when it was cut off. */
static int look(const struct store_disk *store, bool *ret_fresh, struct err *err)
{
	struct layout_list list;
	bool current = false, content = false;
	int rc = layout_list(store->vfs, store->path, &list, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < list.count; i++) {
		enum layout_kind kind = list.entries[i].name.kind;

		current |= kind == LAYOUT_CURRENT_FILE;
		content |= kind == LAYOUT_WAL || kind == LAYOUT_PART || kind == LAYOUT_STATE;
	}
	free(list.entries);
	*ret_fresh = !current;
	if (!current && content)
		return err_set(err, ERR_CORRUPT,
			       "store \"%s\" has lost its file CURRENT; restore it from a backup",
			       store->path);
	if (!current && list.foreign)
		return err_set(err, ERR_INVALID,
			       "\"%s\" is not a firn store: it holds \"%s\"; choose an empty "
			       "--storage-path",
			       store->path, list.foreign_name);
	return 0;
}

static int make_dir(const struct store_disk *store, struct err *err)
{
	char *copy = mem_strndup(store->path, strlen(store->path));
	int rc = store->vfs->mkdir(store->vfs, store->path);

	if (rc && rc != -EEXIST)
		rc = err_set_errno(err, -rc, "make storage directory \"%s\"", store->path);
	else
		rc = rc ? 0 : vfs_sync_dir(store->vfs, dirname(copy), err);
	free(copy);
	return rc;
}

static int open_writable(struct store_disk *store, struct err *err)
{
	bool fresh = false;
	int rc = make_dir(store, err);

	if (!rc)
		rc = look(store, &fresh, err); /* before leaving a LOCK in somebody's directory */
	if (!rc)
		rc = store_take_lock(store, err);
	if (!rc)
		rc = look(store, &fresh, err);
	if (!rc)
		rc = store_recover(store, fresh, err);
	assert(!store->options.read_only && (rc || store->lock_file));
	store->opened_ns = store_now_ns(store);
	if (!rc)
		store_watch_disk(store);
	if (!rc)
		rc = store_bucket_open(store, err);
	if (!rc && !store->options.no_background) {
		store_make_log_ahead(store);
		rc = store_start_background(store, err);
	}
	if (!rc && !store->options.no_background)
		rc = store_start_maintenance(store, err);
	if (rc) {
		store_stop_background(store);
		store_bucket_close(store);
	}
	return rc;
}

/*
 * A running server may compact and drop parts while we read: their files are held open, all of
 * one moment. ERR_NOT_FOUND when one went already: the store is opened again then.
 */
static int hold_parts(struct store_disk *store, struct err *err)
{
	size_t count = part_cache_select(&store->cache, INT64_MIN, INT64_MAX, &store->held);
	int rc = 0;

	assert(store->options.read_only && !store->held_count);
	store->held_count = count;
	for (size_t i = 0; i < count && i < HELD_PARTS_MAX && rc != -ERR_NOT_FOUND; i++)
		rc = part_cache_load(&store->cache, store->held[i], err);
	return rc == -ERR_NOT_FOUND ? rc : 0; /* what is damaged is told when it is asked for */
}

static int open_read_only(struct store_disk *store, struct err *err)
{
	bool fresh = false;
	int rc = look(store, &fresh, err);

	if (!rc && fresh)
		return err_set(err, ERR_NOT_FOUND, "no firn store in \"%s\"", store->path);
	if (!rc)
		rc = store_recover(store, false, err);
	return rc ? rc : hold_parts(store, err);
}

int store_open(const struct store_options *options, struct store **ret, struct err *err)
{
	struct err cause = { 0 };
	int rc = layout_check_dir(options->path, err);

	if (rc)
		return rc;
	store_metrics_register();
	for (int tries = 0; tries < READ_ONLY_TRIES; tries++) {
		struct store_disk *store = store_disk_new(options);

		rc = options->read_only ? open_read_only(store, &cause)
					: open_writable(store, &cause);
		if (!rc) {
			*ret = &store->base;
			return 0;
		}
		store_disk_free(store);
		if (!options->read_only || rc != -ERR_NOT_FOUND)
			break;
	}
	if (err)
		*err = cause;
	return rc;
}

void store_disk_close(struct store *base)
{
	struct store_disk *store = store_disk_of(base);

	store_stop_maintenance(store);
	store_stop_background(store);
	store_bucket_close(store);
	store_take_log(store); /* running appends have theirs before */
	store_give_log(store);
	store_disk_free(store);
}

struct store_folder {
	struct store_disk disk; /* only what the lock needs */
};

int store_folder_open(const char *path, struct store_folder **ret, struct err *err)
{
	struct store_folder *folder = mem_new(struct store_folder);
	int rc;

	folder->disk.vfs = &vfs_posix;
	folder->disk.path = mem_strndup(path, strlen(path));
	rc = make_dir(&folder->disk, err);
	if (!rc)
		rc = store_take_lock(&folder->disk, err);
	if (rc) {
		store_folder_close(folder);
		return rc;
	}
	*ret = folder;
	return 0;
}

void store_folder_close(struct store_folder *folder)
{
	if (!folder)
		return;
	vfs_close(folder->disk.lock_file);
	free(folder->disk.path);
	free(folder);
}
