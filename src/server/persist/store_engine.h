/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_engine - the interface of a kind of store behind store.h. Only for stores and their tests.
 *
 * `struct store` is the beginning of an engine's own structure: the engine that opens a store sets
 * the pointer, and store.c passes calls on. Contracts, threads and errors are those of store.h and
 * store_admin.h. What rests on snapshots alone (store_count_stacks, store_count_labels) needs no
 * engine. Sealing, compacting, scrubbing and the bucket are the store's on disk (store_int.h):
 * another engine's store answers ERR_UNSUPPORTED.
 */
#ifndef FIRN_SERVER_PERSIST_STORE_ENGINE_H
#define FIRN_SERVER_PERSIST_STORE_ENGINE_H

#include "server/persist/store.h"
#include "server/persist/store_admin.h"

struct store_engine {
	int (*append)(struct store *store, const struct tables_view *batch,
		      struct append_result *ret, struct err *err);
	int (*takes_appends)(struct store *store, struct err *err);
	int (*snapshot)(struct store *store, const struct store_query *query,
			struct store_snapshot *ret, struct err *err);
	void (*snapshot_release)(struct store *store, struct store_snapshot *snapshot);
	int (*stat)(struct store *store, struct store_stat *ret, struct err *err);
	void (*bucket_stat)(struct store *store,
			    struct store_bucket_stat *ret); /* NULL: no bucket */
	void (*remote_stat)(struct store *store,
			    struct store_remote_stat *ret); /* NULL: it is on disk */
	int (*delete_reports)(struct store *store, const struct store_delete *order,
			      uint64_t *ret_number, struct err *err);
	void (*deletes)(struct store *store, const struct slice *tenant, struct store_deletes *ret);
	void (*end_by)(struct store *store, int64_t at_ns); /* NULL: no call waits for anyone */
	int (*tick)(struct store *store, struct err *err);
	void (*close)(struct store *store);
};

struct store {
	const struct store_engine *engine;
};

#endif
