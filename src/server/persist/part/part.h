/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part - an immutable file of profiles in partitions, compressed and checked
 * (docs/formats/part.md).
 *
 *   part_writer   writes one, a partition after the other
 *   part_reader   opens one; its partitions are segments
 *   part_cache    the ones that the store has
 *
 * A part is written to a temporary name, synced, renamed, and the directory synced; then a manifest
 * edit puts it in force.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_H
#define FIRN_SERVER_PERSIST_PART_PART_H

#include "model/identity.h"
#include "server/persist/disk/layout.h"
#include "model/tables.h"

#define PART_VERSION 4
#define PART_VERSION_OLDEST 3 /* that is read */

/* How far a part has come: which window its reports were gathered in. */
enum part_tier {
	PART_SEALED,   /* as it left memory */
	PART_GATHERED, /* several of those, while their window is still open */
	PART_HOURS,    /* what one window of two hours holds */
	PART_DAY,      /* likewise a day */
	PART_TIERS
};

/*
 * The manifest knows this much of a part, so that one outside the query is never opened. The writer
 * fills it in, but for the last three fields, which are the manifest's alone.
 */
struct part_info {
	uint64_t number; /* from manifest_take_number */
	uint64_t bytes;
	int64_t min_start_ns, max_start_ns; /* of raw reports */
	uint64_t rows, reports, series, stacks;
	uint64_t bytes_samples, bytes_stacks, bytes_symbols, bytes_rollups;
	uint64_t bytes_moments; /* times of samples, and what they were taken for */
	struct identity hash;
	enum part_tier tier;
	uint64_t deleted_to; /* tombstones up to this number have been carried out in it */
	bool damaged;	     /* found so, and set aside: answers lack it */
};

/* Plain tables (with reports) as a part: arranged, encoded, durable under its name. */
MUST_USE int part_write(const struct vfs *vfs, const char *dir, const struct tables_view *view,
			uint64_t number, struct part_info *ret, struct err *err);

#endif
