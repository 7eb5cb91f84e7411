/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_bucket_int - what the store's own files call of store_bucket, and the file BUCKET.
 */
#ifndef FIRN_SERVER_PERSIST_STORE_BUCKET_INT_H
#define FIRN_SERVER_PERSIST_STORE_BUCKET_INT_H

#include "server/persist/manifest/bucket_manifest.h"
#include "server/persist/store.h"

#define BUCKET_URL_BYTES 2048

/* What the file BUCKET says. */
struct bucket_place {
	char url[BUCKET_URL_BYTES];
	char store[BUCKET_ID_BYTES];  /* the store's name in the bucket */
	char writer[BUCKET_ID_BYTES]; /* the directory's own */
	uint64_t manifest;	      /* the newest that it put, or that it was made of */
	uint64_t generation;	      /* the log's, from which on the bucket lacks it */
	int64_t saved_ns;	      /* what was acknowledged before is there */
};

/* *ret_is_known: the file names this bucket. Else a new store and writer are made up. */
MUST_USE int bucket_place_read(struct bucket_place *ret, const char *url, const struct vfs *vfs,
			       const char *dir, bool *ret_is_known, struct err *err);
MUST_USE int bucket_place_write(const struct bucket_place *place, const struct vfs *vfs,
				const char *dir, struct err *err);

struct store_disk;

/* store_bucket_step of store_bucket.h. */
MUST_USE int store_disk_bucket_step(struct store_disk *store, struct err *err);

/* With an open store, before its threads start; after an error call store_bucket_close, too. */
MUST_USE int store_bucket_open(struct store_disk *store, struct err *err);
void store_bucket_close(struct store_disk *store);

/* With seal_lock, once the generation is parts, before its memtable goes. */
void store_bucket_note_sealed(struct store_disk *store, uint64_t generation, int64_t created_ns);

/* For /metrics. */
void store_bucket_publish(struct store_disk *store);

#endif
