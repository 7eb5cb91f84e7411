/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucket - object storage: named byte strings that are put whole, read in ranges, listed by name
 * and removed. net/s3 is the real one; tests have one that can fail at every call.
 *
 * Keys are relative to where the bucket was opened; ASCII of [A-Za-z0-9/._-]. A call that returns
 * an error may have taken effect: perhaps only its answer was lost. Any thread. Calls block, and
 * retry where that can help.
 */
#ifndef FIRN_BASE_STORAGE_BUCKET_H
#define FIRN_BASE_STORAGE_BUCKET_H

#include "base/err.h"
#include "base/strbuf.h"

#define BUCKET_KEY_BYTES_MAX 512

struct bucket;

/* Bytes to put that are not in memory. `read` gives all of the range, or an error. */
struct bucket_source {
	uint64_t bytes;
	int (*read)(void *context, void *data, size_t len, uint64_t offset, struct err *err);
	void *context;
};

struct bucket_entry {
	struct slice key; /* ends in '/': names go on behind it (bucket_list with `folders`) */
	uint64_t bytes;
};

/* A result other than 0 ends the list. */
typedef int bucket_entry_f(void *context, const struct bucket_entry *entry, struct err *err);

struct bucket {
	/*
	 * Durable when it returns. `only_new`: ERR_EXISTS if the object exists, even if this call
	 * put it and lost the answer; the caller then checks whose it is.
	 */
	int (*put)(struct bucket *bucket, const char *key, struct slice bytes, bool only_new,
		   struct err *err);
	int (*put_source)(struct bucket *bucket, const char *key,
			  const struct bucket_source *source, struct err *err);
	/* Appends len bytes from an offset, exactly. ERR_NOT_FOUND; ERR_INVALID: not so long. */
	int (*get_range)(struct bucket *bucket, const char *key, uint64_t from, size_t len,
			 struct strbuf *out, struct err *err);
	/* Appends all of it. ERR_LIMIT when it has more than max_bytes. */
	int (*get)(struct bucket *bucket, const char *key, size_t max_bytes, struct strbuf *out,
		   struct err *err);
	int (*size)(struct bucket *bucket, const char *key, uint64_t *ret, struct err *err);
	int (*remove)(struct bucket *bucket, const char *key, struct err *err); /* or is gone */
	/*
	 * Lists the keys that begin with the prefix and come after `after` (NULL: all), in order.
	 * With `folders`, keys with a '/' behind the prefix are listed once, cut there, before or
	 * after the others.
	 */
	int (*list)(struct bucket *bucket, const char *prefix, const char *after, bool folders,
		    bucket_entry_f *entry, void *context, struct err *err);
	/* Calls under way end soon, with ERR_CANCELLED, and so do later ones. */
	void (*cancel)(struct bucket *bucket);
	void (*close)(struct bucket *bucket);
};

#endif
