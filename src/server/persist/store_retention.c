/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room on the disk: whole parts go when they are over age or over the limit of bytes, the one that
 * ends first before the others. And appends stop while less is free than the reserve, so that
 * there is room for what must be written still: parts, the manifest, compaction.
 */
#include "base/log.h"
#include "server/persist/store_int.h"

#define RESUME_PERCENT 110 /* of the reserve, so that appends do not stop and go at its edge */

static int drop_part(struct store_disk *store, uint64_t number, struct err *err)
{
	struct manifest_edit edit = { 0 };
	int rc;

	lock_assert_held(&store->seal_lock);
	manifest_edit_drop_part(&edit, number);
	rc = manifest_commit(&store->manifest, &edit, err);
	manifest_edit_free(&edit);
	if (rc)
		return rc;
	part_cache_drop(&store->cache, number);
	metric_add(&store_parts_dropped, 1);
	return 0;
}

/*
 * What the log and the files of state take, which count as well. At most half of the limit: parts
 * are what is kept, and the log becomes one of them soon.
 */
static uint64_t other_bytes(const struct store_disk *store)
{
	uint64_t bytes = 0;

	if (!store->options.retention_bytes || layout_other_bytes(store->vfs, store->path, &bytes))
		return 0;
	if (bytes > store->options.retention_bytes / 2)
		return store->options.retention_bytes / 2;
	return bytes;
}

/* The part that ends first, if retention says that it has to go; else 0. */
static uint64_t part_to_drop(const struct store_disk *store, uint64_t bytes)
{
	const struct manifest_state *state = &store->manifest.state;
	const struct part_info *oldest = NULL;
	int64_t keep_from = store_now_ns(store) - store->options.retention_ns;

	lock_assert_held(&store->seal_lock);
	for (size_t i = 0; i < state->parts_count; i++) {
		bytes += state->parts[i].bytes;
		if (!oldest || state->parts[i].max_start_ns < oldest->max_start_ns)
			oldest = &state->parts[i];
	}
	if (!oldest)
		return 0;
	if (store->options.retention_ns && oldest->max_start_ns < keep_from)
		return oldest->number;
	if (store->options.retention_bytes && bytes > store->options.retention_bytes)
		return oldest->number;
	return 0;
}

int store_apply_retention(struct store_disk *store, struct err *err)
{
	uint64_t number, others = other_bytes(store);
	int rc = 0;

	lock_assert_held(&store->seal_lock);
	while (!rc && (number = part_to_drop(store, others)))
		rc = drop_part(store, number, err);
	return rc;
}

void store_watch_disk(struct store_disk *store)
{
	uint64_t reserve = store->options.reserve_bytes, free_bytes, total_bytes;
	bool was, full;

	if (store->vfs->space(store->vfs, store->path, &free_bytes, &total_bytes))
		return; /* nothing is known: what is written will tell */
	lock_take(&store->lock);
	was = store->disk_full;
	full = free_bytes < (was ? reserve / 100 * RESUME_PERCENT : reserve);
	store->disk_full = full;
	store->disk_free_bytes = free_bytes;
	if (free_bytes >= 2 * store->options.segment_bytes)
		store->log_full = false; /* whoever asks whether to send has to be told to try */
	lock_give(&store->lock);
	metric_set(&store_disk_free_bytes, (int64_t)free_bytes);
	metric_set(&store_disk_full, full);
	if (full && !was)
		log_error("store", "disk is nearly full: profiles are refused until there is space",
			  "path=\"%s\" free_bytes=%llu reserve_bytes=%llu", store->path,
			  (unsigned long long)free_bytes, (unsigned long long)reserve);
	else if (was && !full)
		log_info("store", "disk has free space again: profiles are accepted",
			 "path=\"%s\" free_bytes=%llu", store->path,
			 (unsigned long long)free_bytes);
}

int store_check_space(struct store_disk *store, struct err *err)
{
	int rc = 0;

	lock_take(&store->lock);
	if (store->disk_full)
		rc = err_set(err, ERR_NO_SPACE,
			     "profiles are refused: the disk of \"%.200s\" has %llu MB free, and "
			     "%llu MB "
			     "are kept in reserve; free space, or lower --storage-retention-size",
			     store->path, (unsigned long long)(store->disk_free_bytes >> 20),
			     (unsigned long long)(store->options.reserve_bytes >> 20));
	lock_give(&store->lock);
	return rc;
}
