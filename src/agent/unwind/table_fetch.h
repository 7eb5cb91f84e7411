/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_fetch - gets the unwind table of a binary: from the cache, or by building it, into the
 * cache where there is one. A damaged file of the cache is removed and built anew; a cache that
 * cannot be written (full disk) costs a second build, in memory, and no table.
 *
 * Owned by one thread.
 */
#ifndef FIRN_AGENT_UNWIND_TABLE_FETCH_H
#define FIRN_AGENT_UNWIND_TABLE_FETCH_H

#include <stdatomic.h>

#include "agent/unwind/table_cache.h"
#include "agent/unwind/table_file.h"
#include "base/slice.h"

struct table_fetch {
	struct table_cache *cache; /* owned; NULL = none */
	const atomic_bool *cancel;
};

struct table_request {
	int fd;		    /* the binary; borrowed; -1 = not open */
	struct slice image; /* the binary in memory, when it is in no file: never cached */
	const char *path;   /* for messages */
	const char *name;   /* in the cache, from an earlier fetch; "" = not known */
};

struct table_found {
	struct table_file file; /* checked; its fd is owned, its name is the request's path */
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	char name[TABLE_CACHE_NAME_BYTES]; /* in the cache; "" = has none */
	bool is_elf;			   /* it is one, so that what fails is worth telling */
	bool cached;
	uint64_t build_ns; /* CPU time; 0 = not built */
};

/* ERR_NOT_FOUND when the binary is not open and its table is not cached; else as table_build. */
int table_fetch_get(struct table_fetch *fetch, const struct table_request *request,
		    struct table_found *ret, struct err *err);
void table_found_close(struct table_found *found);

#endif
