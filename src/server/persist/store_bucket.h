/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_bucket - a store's second place, in object storage: parts go there when they are made, a
 * manifest follows them, and a store can be made of that again when the disk is gone.
 *
 * Order is what makes it safe: a part before the manifest that names it, a manifest before objects
 * that it no longer names are removed. Whatever is cut off in between leaves objects that no
 * manifest names; they go an hour after they were first seen so. A manifest is put only where none
 * of its number was: of two processes that write one store, one finds that it is not alone, and
 * from then on takes nothing any more.
 *
 * The file BUCKET says which store of the bucket the directory is, and up to which manifest it
 * has taken part in it. A directory that the bucket has left behind does not write to it.
 */
#ifndef FIRN_SERVER_PERSIST_STORE_BUCKET_H
#define FIRN_SERVER_PERSIST_STORE_BUCKET_H

#include "base/storage/bucket.h"
#include "server/persist/store.h"

/*
 * Brings the bucket up to date. The store's own thread does it every second; for tests with
 * no_background, by one thread at a time. ERR_BUSY: another process writes there (and the store
 * is read-only from then on).
 */
MUST_USE int store_bucket_step(struct store *store, struct err *err);

struct store_restore {
	char store[33];	    /* which one of the bucket */
	int64_t covered_ns; /* what was acknowledged before is in it */
	int64_t at_ns;	    /* when it was put there */
	uint64_t parts, bytes;
};

/*
 * Makes the directory `to`, which is empty or not there, of the newest state in the bucket.
 * `store`: which one, where the bucket has several; or NULL. A server with this bucket goes on
 * from it, and shuts out the one before. ERR_NOT_FOUND, ERR_EXISTS, ERR_INVALID (several: the
 * message names them), ERR_CORRUPT.
 */
MUST_USE int store_restore(struct bucket *bucket, const char *url, const char *store,
			   const char *to, const struct vfs *vfs, struct store_restore *ret,
			   struct err *err);

#endif
