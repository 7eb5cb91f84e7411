/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_list - what a bucket has of debug information (shared.h), in the order of its names.
 *
 * Keys are outside text: a name of another shape is passed over. Bounded by SHARED_OBJECTS_MAX.
 */
#ifndef FIRN_SERVER_DEBUGINFO_SHARED_LIST_H
#define FIRN_SERVER_DEBUGINFO_SHARED_LIST_H

#include "base/storage/bucket.h"
#include "codec/wire/sha256.h"
#include "server/debuginfo/disk.h"

#define SHARED_OBJECTS_MAX 262144u
#define SHARED_PREFIX "debuginfo/"

struct shared_object {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	enum debuginfo_kind kind;
	char sha256[2 * SHA256_DIGEST_BYTES + 1];
	bool has_file, has_record;
	bool is_settled;    /* what is here is as good: it need not be fetched */
	uint32_t used_day;  /* the newest; 0: no server has said so */
	int64_t seen_at_ns; /* when it was listed first by this process; wall clock */
	int64_t again_ns;   /* monotonic: it is not tried before */
};

struct shared_list {
	struct shared_object *objects; /* ascending by build id, kind, hash */
	size_t count, capacity;
	/* Keys of uses that a newer one follows. */
	struct strbuf old_uses; /* with NULs between them */
};

struct shared_key {
	char text[BUCKET_KEY_BYTES_MAX];
};

struct shared_key shared_file_key(const struct shared_object *object);
struct shared_key shared_record_key(const struct shared_object *object);
struct shared_key shared_use_key(const struct shared_object *object, uint32_t day);

/* Into an empty list, which is to be freed also after a failure. */
MUST_USE int shared_list_read(struct shared_list *list, struct bucket *bucket, int64_t now_ns,
			      struct err *err);

/* The new list takes the place of the old one, whose knowledge of equal objects stays. */
void shared_list_adopt(struct shared_list *fresh, struct shared_list *list);
void shared_list_free(struct shared_list *list);

/* The first object of the build id, or where it would be. */
size_t shared_list_first(const struct shared_list *list, struct slice build_id);
struct shared_object *shared_list_find(const struct shared_list *list, struct slice build_id,
				       enum debuginfo_kind kind, const char *sha256);

#endif
