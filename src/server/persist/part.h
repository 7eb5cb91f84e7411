/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part - an immutable file of profiles: one memtable, arranged, encoded, checksummed.
 *
 * Little-endian (docs/formats/part.md):
 *
 *   0   8  magic "FIRNPRT\0"
 *   8   4  version, 1
 *   12  4  0
 *   16  8  generation
 *   24     sections (tables_codec.h)
 *   f      footer: u32 count of sections, then per section u32 type, u64 offset, u64 bytes
 *   e-48 8 offset f of the footer
 *   e-40 8 generation
 *   e-32 16 XXH3-128 of bytes 0 .. f (low, high)
 *   e-16 4 bytes of the footer
 *   e-12 4 CRC32C of the footer and of the 36 bytes before this field
 *   e-8  8 magic "FIRNEND\0"
 *
 * Written to a temporary name, synced, renamed, directory synced; only then a manifest edit makes
 * it count. Pure functions but for part_write and part_read; safe from any thread.
 */
#ifndef FIRN_SERVER_PERSIST_PART_H
#define FIRN_SERVER_PERSIST_PART_H

#include "server/persist/identity.h"
#include "server/persist/layout.h"
#include "server/persist/tables_codec.h"

#define PART_VERSION 1
#define PART_FILE_BYTES_MAX ((uint64_t)4 << 30)
#define PART_RAW_BYTES_MAX ((uint64_t)8 << 30)

/* How far a part has come: which window its reports were gathered in. */
enum part_tier {
	PART_SEALED,   /* as it left memory */
	PART_GATHERED, /* several of those, while their window is still open */
	PART_HOURS,    /* what one window of two hours holds */
	PART_DAY,      /* likewise a day */
	PART_TIERS
};

/*
 * What the manifest knows, so that a part outside the question is never opened. The writer fills
 * it in, but for the last three fields, which are the manifest's alone.
 */
struct part_info {
	uint64_t number; /* from manifest_take_number */
	uint64_t bytes;
	int64_t min_start_ns, max_start_ns; /* of raw reports */
	uint64_t rows, reports, series, stacks;
	uint64_t bytes_samples, bytes_stacks, bytes_symbols, bytes_rollups;
	struct identity hash;
	enum part_tier tier;
	uint64_t deleted_to; /* tombstones up to this number have been carried out in it */
	bool damaged;	     /* found so, and set aside: answers lack it */
};

/* The bytes of a part. The view's order is kept: arrange it first (part_arrange.h). */
void part_encode(const struct tables_view *arranged, uint64_t generation, struct strbuf *out,
		 struct part_info *ret);

/* Everything is checked. ERR_CORRUPT or ERR_UNSUPPORTED. */
int part_decode(struct slice bytes, uint64_t generation, struct tables_image *ret,
		struct identity *ret_hash, struct err *err);

/* Arranges, encodes and makes the file durable under its name. */
int part_write(const struct vfs *vfs, const char *dir, const struct tables_view *view,
	       uint64_t generation, struct part_info *ret, struct err *err);

/* Reads the part that the manifest describes; another file of that name is ERR_CORRUPT. */
int part_read(const struct vfs *vfs, const char *dir, const struct part_info *info,
	      struct tables_image *ret, struct err *err);

#endif
