/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_follow - a store that only reads: the stores that other servers keep in buckets, all
 * together, as of the newest manifest of each (store_bucket.h).
 *
 * Invariant: a snapshot has of each followed store the parts and deletions of exactly one manifest,
 * the newest that was seen; manifests are never taken in again once a newer one was. Parts are
 * opened in the bucket and read through object_files, which keeps what was read on the local disk.
 * A thread looks for newer manifests; objects stay an hour after the last manifest that named them,
 * so a query never loses what it reads unless this process slept that long: then it looks at once.
 *
 * Reports that two writers acknowledged count twice, as they are in two stores. Everything else
 * about reading is as store.h says; what would change something is ERR_READ_ONLY.
 */
#ifndef FIRN_SERVER_PERSIST_STORE_FOLLOW_H
#define FIRN_SERVER_PERSIST_STORE_FOLLOW_H

#include "server/persist/store.h"

#define STORE_FOLLOW_REFRESH_NS (10 * CLOCK_NS_PER_S)
#define STORE_FOLLOW_SOURCES_MAX 64u

struct store_follow_source {
	struct bucket *bucket; /* stays the caller's, and must outlive the store */
	const char *url;       /* its name, for messages */
};

struct store_follow_options {
	const struct store_follow_source *sources; /* at most STORE_FOLLOW_SOURCES_MAX; copied */
	size_t sources_count;
	const char *cache_dir; /* of the local file of what was read; exists */
	uint64_t cache_bytes;  /* at most so much is kept there */
	const struct vfs *vfs; /* of that file; NULL = the operating system's */
	int64_t refresh_ns;    /* 0 = STORE_FOLLOW_REFRESH_NS */
	clock_f *clock;	       /* NULL = clock_real_ns */
	void *clock_context;
	bool no_background; /* tests: store_tick looks for newer manifests */
};

/*
 * Looks at the buckets first. A bucket that does not answer, or has no store yet, is looked at
 * again later: until each was read once, store_takes_appends fails with ERR_UNAVAILABLE, and says
 * why. Errors of the local file only.
 */
MUST_USE int store_follow_open(const struct store_follow_options *options, struct store **ret,
			       struct err *err);

#endif
