/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_cache - unwind tables on disk, so that they are built once per binary and not once per
 * start of an agent.
 *
 * A folder of table files (table_file.h), named by what they were built from: the build id, and a
 * hash of the program headers and the length of the file, because tools that rewrite a file
 * (strip, patchelf) keep its build id, and of its owner, because anybody can make a file with the
 * build id of another's. The version of the format is in the name too; files of
 * other versions are never read and go like any other when room is needed. Whoever reads a file
 * checks it (table_file_open) and removes it here when it is damaged; nothing is synced to disk,
 * so after a crash of the host files may be.
 *
 * The folder has to be ours and writable by nobody else; it is made with mode 0700. Only regular
 * files of our own are opened, links are not followed, and files that have none of our names are
 * neither counted nor removed. Several agents may share a folder: a file appears by rename.
 *
 * Bound: the sum of the lengths; over it, those not used for longest go (mtime, which is set when
 * a file is used). Owned by one thread.
 */
#ifndef FIRN_AGENT_UNWIND_TABLE_CACHE_H
#define FIRN_AGENT_UNWIND_TABLE_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "codec/elf/elf.h"

#define TABLE_CACHE_DEFAULT_BYTES (256ull << 20)
#define TABLE_CACHE_NAME_BYTES 192

struct table_cache;

/* Makes the folder and those above it where they are missing. `max_bytes` 0 = default. */
int table_cache_open(const char *path, uint64_t max_bytes, struct table_cache **ret,
		     struct err *err);
void table_cache_close(struct table_cache *cache); /* accepts NULL */

/*
 * The name of the table of a file of this owner; false when it cannot have one: no build id, or
 * one that is not lower-case hex.
 */
bool table_cache_name(const struct elf_info *info, uid_t owner, char ret[TABLE_CACHE_NAME_BYTES]);

/* Opens a table for reading. ERR_NOT_FOUND; ERR_DENIED when it is not our file. */
int table_cache_find(struct table_cache *cache, const char *name, int *ret_fd, struct err *err);

/* A file on its way into the cache. */
struct table_cache_draft {
	int fd; /* for reading and writing, empty */
	char name[48];
};

int table_cache_create(struct table_cache *cache, struct table_cache_draft *ret, struct err *err);

/*
 * Gives the draft its name, in place of what had it, and makes room for it; the fd stays open and
 * the caller's. Or removes it: then the fd is still good as well.
 */
int table_cache_publish(struct table_cache *cache, struct table_cache_draft *draft,
			const char *name, struct err *err);
void table_cache_discard(struct table_cache *cache, struct table_cache_draft *draft);

void table_cache_remove(struct table_cache *cache, const char *name); /* it was damaged */

uint64_t table_cache_bytes(const struct table_cache *cache); /* as of the last look */

#endif
