/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_bucket - a copy of a store in object storage: new parts are uploaded, a manifest follows
 * them, and the store can be restored from both when the disk is lost.
 *
 * Invariant: a part is uploaded before the manifest that names it, and a manifest before objects
 * that it no longer names are removed. An interruption in between leaves objects that no manifest
 * names; they are removed an hour after they were first seen. A manifest is put only if its number
 * does not exist: so if two processes write one store, one of them notices, and refuses profiles
 * from then on.
 *
 * The file BUCKET says which store of the bucket the directory is, and the last manifest that it
 * wrote. A directory whose manifest is not the newest any more does not write to the bucket.
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
 * Makes the directory `to`, which is empty or missing, from the newest state in the bucket.
 * `store`: which one, if the bucket has several; or NULL. A server with this directory and bucket
 * continues from there, and fences the previous one. ERR_NOT_FOUND, ERR_EXISTS, ERR_INVALID
 * (several: the message names them), ERR_CORRUPT.
 */
MUST_USE int store_restore(struct bucket *bucket, const char *url, const char *store,
			   const char *to, const struct vfs *vfs, struct store_restore *ret,
			   struct err *err);

#endif
