/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout - the names of the files of a store directory, and nothing else.
 *
 *   LOCK               held by the process that writes
 *   CURRENT            names the manifest in force
 *   MANIFEST-000001    which parts and states make up the store
 *   wal-000001-0002.wal   log of memtable generation 1, segment 2
 *   part-000001.firn   profiles; numbered by the manifest
 *   state-000001.firn  dedupe window and baselines at the end of generation 1
 *   BUCKET             what the store is called in object storage, and what of it is there
 *   quarantine/        damaged files, set aside
 *   debuginfo/         not the store's: server/debuginfo
 *   *.tmp              not yet in force; removed at open
 *
 * Numbers are decimal, at least that many digits, and sort as numbers.
 */
#ifndef FIRN_SERVER_PERSIST_DISK_LAYOUT_H
#define FIRN_SERVER_PERSIST_DISK_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "server/persist/disk/vfs.h"

#define LAYOUT_LOCK "LOCK"
#define LAYOUT_CURRENT "CURRENT"
#define LAYOUT_BUCKET "BUCKET"
#define LAYOUT_QUARANTINE "quarantine"
#define LAYOUT_DEBUGINFO "debuginfo"
#define LAYOUT_NAME_BYTES_MAX 64
#define LAYOUT_PATH_BYTES_MAX 4096

enum layout_kind {
	LAYOUT_FOREIGN, /* not one of ours */
	LAYOUT_LOCK_FILE,
	LAYOUT_CURRENT_FILE,
	LAYOUT_MANIFEST,
	LAYOUT_WAL,
	LAYOUT_PART,
	LAYOUT_STATE,
	LAYOUT_TEMPORARY,
	LAYOUT_QUARANTINE_DIR,
	LAYOUT_SYSTEM, /* lost+found, and what others keep here */
};

struct layout_name {
	enum layout_kind kind;
	uint64_t number;  /* of the manifest or part, or the generation */
	uint64_t segment; /* of a WAL */
};

struct layout_path {
	char text[LAYOUT_PATH_BYTES_MAX];
};

struct layout_name layout_parse(const char *name);
void layout_format(const struct layout_name *name, char ret[LAYOUT_NAME_BYTES_MAX]);

/* `dir`/`name`. Callers checked that the directory's path leaves room (layout_check_dir). */
struct layout_path layout_join(const char *dir, const char *name);
struct layout_path layout_path_of(const char *dir, struct layout_name name);
struct layout_path layout_path(const char *dir, enum layout_kind kind, uint64_t number);
MUST_USE int layout_check_dir(const char *dir, struct err *err);

struct layout_entry {
	struct layout_name name;
	char text[LAYOUT_NAME_BYTES_MAX];
};

/* The directory's names of our kinds, sorted by kind, number, segment. Free `entries` with free().
 */
struct layout_list {
	struct layout_entry *entries;
	size_t count, capacity;
	size_t foreign;				  /* entries that are not ours */
	char foreign_name[LAYOUT_NAME_BYTES_MAX]; /* one of them */
};
MUST_USE int layout_list(const struct vfs *vfs, const char *dir, struct layout_list *ret,
			 struct err *err);

/* Sums the live files other than parts: log, manifests, states. 0 or -errno. */
MUST_USE int layout_other_bytes(const struct vfs *vfs, const char *dir, uint64_t *ret);

/* Moves a damaged file into quarantine/, which is made when missing. Not an error when it is gone.
 */
MUST_USE int layout_quarantine(const struct vfs *vfs, const char *dir, struct layout_name name,
			       struct err *err);

#endif
