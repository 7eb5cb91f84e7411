/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest - which files make up the store: a log of edits, each atomic.
 *
 * `MANIFEST-<n>` begins with a header and a record that holds everything; each later record is an
 * edit. CURRENT names the manifest in force and is changed by rename. An edit counts once it is
 * synced. Little-endian (docs/formats/manifest.md):
 *
 *   header: 0  8 magic "FIRNMAN\0"    record: 0  4 payload bytes
 *           8  4 version, 3                   4  4 CRC of the record before (at first: header's)
 *           12 4 CRC32C of bytes 0..11        8  4 CRC32C of the payload, begun with bytes 0..7
 *                                             12   items: type byte, then LEB128 fields
 *
 * Parts and tombstones are numbered from one counter. A tombstone applies to parts with smaller
 * numbers, unless it was carried out in them (part_info.deleted_to): a part takes its number before
 * it is made, so a tombstone that is committed meanwhile applies to it. The newest
 * MANIFEST_TOMBSTONES_KEPT tombstones that are done stay on record: who deleted what, and when.
 *
 * Validity: records up to the first that is not good. A torn record at the end was never in force;
 * nothing is ever appended after one, because every open for writing begins a new manifest. So a
 * whole record after one that is not good means that edits in force were lost: ERR_CORRUPT, because
 * their content must not be guessed (files that no edit names are removed). Written by one thread
 * at a time; the caller guards `state`.
 */
#ifndef FIRN_SERVER_PERSIST_MANIFEST_MANIFEST_H
#define FIRN_SERVER_PERSIST_MANIFEST_MANIFEST_H

#include "server/persist/part/part.h"
#include "server/persist/log/wal.h"

#define MANIFEST_VERSION 3
#define MANIFEST_BYTES_MAX ((uint64_t)256 << 20)
#define MANIFEST_EDIT_BYTES_MAX ((size_t)16384)
#define MANIFEST_TOMBSTONES_KEPT 1000u /* of those that are done */
#define MANIFEST_TOMBSTONES_MAX 10000u /* all together */
#define MANIFEST_SELECTOR_BYTES_MAX 8192u
#define MANIFEST_BY_BYTES_MAX 256u

enum manifest_item {
	MANIFEST_PART_ADDED = 1, /* length of the rest, then the fields of part_info in order */
	MANIFEST_PART_DROPPED,	 /* number */
	MANIFEST_PART_DAMAGED,	 /* number: set aside in quarantine/, until retention drops it */
	MANIFEST_LOG_FROM, /* generation, sequence and CRC before it, generation of the state file
			      or 0 */
	MANIFEST_COUNTER,  /* the next number */
	MANIFEST_TOMBSTONE_ADDED,   /* the fields of manifest_tombstone but the last */
	MANIFEST_TOMBSTONE_DONE,    /* number, time: no part has it before it any more */
	MANIFEST_TOMBSTONE_DROPPED, /* number */
	MANIFEST_PART_DELETED_TO,   /* number, number of a tombstone */
};

/* An order to delete the reports of [from, to) of the series that the selector means. */
struct manifest_tombstone {
	uint64_t number;
	int64_t from_ns, to_ns;
	int64_t created_ns;
	const char *by;	      /* ours; whom the request came from, for people to read */
	const char *selector; /* ours; model/selector.h */
	int64_t done_ns;      /* 0: in force */
};

/* The state that the manifest records. */
struct manifest_state {
	struct part_info *parts; /* ascending by number */
	size_t parts_count, parts_capacity;
	struct manifest_tombstone *tombstones; /* ascending by number */
	size_t tombstones_count, tombstones_capacity;
	uint64_t next_number;	      /* larger than every number that was committed */
	uint64_t log_generation;      /* the log counts from here; earlier generations are parts */
	struct wal_position log_from; /* the record before its first */
	uint64_t state_generation;    /* the state file to start from; 0 = none */
};

void manifest_state_free(struct manifest_state *state);
void manifest_state_check(
	const struct manifest_state *state); /* aborts when it contradicts itself */

/* A pure function of the bytes of a manifest file. */
MUST_USE int manifest_decode(struct slice bytes, struct manifest_state *ret, struct err *err);

/* Appends a manifest file that says this state, in one record. */
void manifest_encode(const struct manifest_state *state, struct strbuf *out);

/* An edit being put together. Zero-initialised is empty. */
struct manifest_edit {
	struct strbuf items;
};
void manifest_edit_add_part(struct manifest_edit *edit, const struct part_info *info);
void manifest_edit_drop_part(struct manifest_edit *edit, uint64_t number);
void manifest_edit_damage_part(struct manifest_edit *edit, uint64_t number);
void manifest_edit_deleted_to(struct manifest_edit *edit, uint64_t number, uint64_t tombstone);
void manifest_edit_add_tombstone(struct manifest_edit *edit,
				 const struct manifest_tombstone *tombstone);
void manifest_edit_tombstone_done(struct manifest_edit *edit, uint64_t number, int64_t done_ns);
void manifest_edit_drop_tombstone(struct manifest_edit *edit, uint64_t number);
void manifest_edit_log_from(struct manifest_edit *edit, uint64_t generation,
			    struct wal_position before, uint64_t state_generation);
void manifest_edit_free(struct manifest_edit *edit);

struct manifest {
	const struct vfs *vfs;
	const char *dir; /* borrowed */
	struct manifest_state state;
	uint64_t number;       /* of the file in force; 0 = none yet */
	struct vfs_file *file; /* NULL: the next commit begins a new file */
	uint64_t offset;
	uint32_t chain_crc;
	uint32_t edits;
	uint64_t taken; /* numbers below it were handed out */
	bool poisoned;	/* a write or sync failed: no commit ever again */
};

/*
 * Reads what CURRENT names. ERR_NOT_FOUND when there is no CURRENT. With `durable`, makes sure
 * that what was read cannot vanish any more (before acting on it).
 */
MUST_USE int manifest_load(struct manifest *manifest, const struct vfs *vfs, const char *dir,
			   bool durable, struct err *err);

/* An empty store whose log begins at generation 1; in force after the first commit. */
void manifest_init(struct manifest *manifest, const struct vfs *vfs, const char *dir);
void manifest_fini(struct manifest *manifest);

/* A number for a part or a tombstone, never given before; it counts once it is committed. */
uint64_t manifest_take_number(struct manifest *manifest);

/*
 * Makes the edit durable, then part of the state. A failure that leaves `poisoned` unset changed
 * nothing and may be tried again (no space). ERR_LIMIT: over MANIFEST_EDIT_BYTES_MAX.
 */
MUST_USE int manifest_commit(struct manifest *manifest, const struct manifest_edit *edit,
			     struct err *err);

#endif
