/* SPDX-License-Identifier: Apache-2.0 */
/* store - passes calls on to the engine of the store (store_engine.h). */
#include "server/persist/store.h"

#include "server/persist/store_bucket.h"
#include "server/persist/store_bucket_int.h"
#include "server/persist/store_int.h"

int store_append(struct store *store, const struct tables_view *batch, struct append_result *ret,
		 struct err *err)
{
	return store->engine->append(store, batch, ret, err);
}

int store_takes_appends(struct store *store, struct err *err)
{
	return store->engine->takes_appends(store, err);
}

int store_snapshot(struct store *store, const struct store_query *query, struct store_snapshot *ret,
		   struct err *err)
{
	return store->engine->snapshot(store, query, ret, err);
}

void store_snapshot_release(struct store *store, struct store_snapshot *snapshot)
{
	store->engine->snapshot_release(store, snapshot);
}

int store_stat(struct store *store, struct store_stat *ret, struct err *err)
{
	return store->engine->stat(store, ret, err);
}

void store_bucket_stat(struct store *store, struct store_bucket_stat *ret)
{
	*ret = (struct store_bucket_stat){ 0 };
	if (store->engine->bucket_stat)
		store->engine->bucket_stat(store, ret);
}

void store_remote_stat(struct store *store, struct store_remote_stat *ret)
{
	*ret = (struct store_remote_stat){ 0 };
	if (store->engine->remote_stat)
		store->engine->remote_stat(store, ret);
}

int store_delete(struct store *store, const struct store_delete *order, uint64_t *ret_number,
		 struct err *err)
{
	return store->engine->delete_reports(store, order, ret_number, err);
}

void store_deletes(struct store *store, const struct slice *tenant, struct store_deletes *ret)
{
	store->engine->deletes(store, tenant, ret);
}

int store_tick(struct store *store, struct err *err)
{
	return store->engine->tick(store, err);
}

void store_end_by(struct store *store, int64_t at_ns)
{
	if (store->engine->end_by)
		store->engine->end_by(store, at_ns);
}

void store_close(struct store *store)
{
	if (store)
		store->engine->close(store);
}

/* The store on disk, or NULL and ERR_UNSUPPORTED. */
static struct store_disk *disk_or_error(struct store *store, const char *what, struct err *err)
{
	if (store->engine == &store_disk_engine)
		return store_disk_of(store);
	err_set(err, ERR_UNSUPPORTED,
		"%s: the profiles are not in a storage directory of this server; nothing is to be "
		"done here",
		what);
	return NULL;
}

int store_seal(struct store *store, struct err *err)
{
	struct store_disk *disk = disk_or_error(store, "seal", err);

	return disk ? store_disk_seal(disk, err) : -ERR_UNSUPPORTED;
}

int store_compact(struct store *store, const struct store_compact_options *options,
		  struct store_compacted *ret, struct err *err)
{
	struct store_disk *disk = disk_or_error(store, "compact", err);

	*ret = (struct store_compacted){ 0 };
	return disk ? store_disk_compact(disk, options, ret, err) : -ERR_UNSUPPORTED;
}

int store_scrub(struct store *store, bool *ret_more, struct err *err)
{
	struct store_disk *disk = disk_or_error(store, "scrub", err);

	*ret_more = false;
	return disk ? store_disk_scrub(disk, ret_more, err) : -ERR_UNSUPPORTED;
}

int store_bucket_step(struct store *store, struct err *err)
{
	struct store_disk *disk = disk_or_error(store, "bring the bucket up to date", err);

	return disk ? store_disk_bucket_step(disk, err) : -ERR_UNSUPPORTED;
}
