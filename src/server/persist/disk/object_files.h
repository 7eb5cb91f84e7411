/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object_files - a vfs whose files are objects of buckets, read through a cache on the local disk.
 *
 * A file exists once object_files_add named it. Its bytes come in extents of OBJECT_EXTENT_BYTES:
 * neighbouring ones that are missing in one request, and once however many threads wait for them.
 * Threads of their own fetch what vfs.will_read announces, several requests at once.
 * They are kept in one local file of limited size; the extents that nobody read for longest make
 * room. That file is made anew at open and has no name, so it needs no recovery and goes with the
 * process. Bytes are not checked here: parts have checksums.
 *
 * Files are read only; every other operation is -EROFS. Any thread.
 */
#ifndef FIRN_SERVER_PERSIST_DISK_OBJECT_FILES_H
#define FIRN_SERVER_PERSIST_DISK_OBJECT_FILES_H

#include "base/storage/bucket.h"
#include "server/persist/disk/vfs.h"

#define OBJECT_EXTENT_BYTES ((uint64_t)256 << 10)
#define OBJECT_CACHE_BYTES_MIN (64 * OBJECT_EXTENT_BYTES)

struct object_files;

/*
 * `dir`: of the local file, on `local`. `cache_bytes`: at most so many are kept, rounded to
 * extents, but OBJECT_CACHE_BYTES_MIN.
 */
MUST_USE int object_files_open(const struct vfs *local, const char *dir, uint64_t cache_bytes,
			       struct object_files **ret, struct err *err);
void object_files_close(struct object_files *files); /* all files are closed; accepts NULL */

const struct vfs *object_files_vfs(struct object_files *files);

/*
 * The object `key`, of `bytes` bytes, as the file `path` until it is unlinked. The bucket must
 * outlive the files. There is no file of this name.
 */
void object_files_add(struct object_files *files, struct bucket *bucket, const char *path,
		      const char *key, uint64_t bytes);

/* How many times a read found that an object is not in its bucket. */
uint64_t object_files_missing(struct object_files *files);

#endif
