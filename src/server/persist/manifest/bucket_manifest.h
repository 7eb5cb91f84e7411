/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucket_manifest - the object that says which objects make up a store in object storage at one
 * moment, and the keys of these objects (docs/formats/bucket.md).
 *
 *   STORE/manifest/NNNNNNNNNNNN   the newest counts; put only if there was none of that number
 *   STORE/part/NUMBER-HASH.firn   a part, as it lies on the disk
 *   STORE/state/GENERATION-HASH   dedupe window and baselines
 *
 * Pure functions; the bytes come from outside.
 */
#ifndef FIRN_SERVER_PERSIST_MANIFEST_BUCKET_MANIFEST_H
#define FIRN_SERVER_PERSIST_MANIFEST_BUCKET_MANIFEST_H

#include "base/storage/bucket.h"
#include "server/persist/manifest/manifest.h"

#define BUCKET_MANIFEST_BYTES_MAX ((size_t)MANIFEST_BYTES_MAX + 4096)
#define BUCKET_ID_BYTES 33 /* 32 hexadecimal digits and a NUL */

struct bucket_key {
	char text[BUCKET_KEY_BYTES_MAX];
};

struct bucket_manifest {
	uint64_t number;
	int64_t at_ns;		       /* when it was made */
	int64_t covered_ns;	       /* what was acknowledged before is in it */
	char writer[BUCKET_ID_BYTES];  /* the directory that it is of */
	char session[BUCKET_ID_BYTES]; /* the process that put it */
	uint64_t state_hash;	       /* of the state object; 0 when there is none */
	struct manifest_state state;
};

void bucket_manifest_encode(const struct bucket_manifest *manifest, struct strbuf *out);

/* ERR_CORRUPT; free with manifest_state_free(&ret->state). */
MUST_USE int bucket_manifest_decode(struct slice bytes, struct bucket_manifest *ret,
				    struct err *err);

/* Keys of a store's objects. */
struct bucket_key bucket_manifest_key(const char *store, uint64_t number);
struct bucket_key bucket_part_key(const char *store, const struct part_info *part);
struct bucket_key bucket_state_key(const char *store, uint64_t generation, uint64_t hash);

/* The number of a manifest's key ("STORE/manifest/000000000042"); 0 when it is none. */
uint64_t bucket_manifest_number(struct slice key);

/* 32 random hexadecimal digits. */
void bucket_make_id(char ret[static BUCKET_ID_BYTES]);
bool bucket_is_id(struct slice text);

/* The number of the newest manifest of the store after `after`; 0 when there is none. */
MUST_USE int bucket_manifest_newest(struct bucket *bucket, const char *store, uint64_t after,
				    uint64_t *ret, struct err *err);
MUST_USE int bucket_manifest_get(struct bucket *bucket, const char *store, uint64_t number,
				 struct bucket_manifest *ret, struct err *err);

#endif
