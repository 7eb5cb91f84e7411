/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tombstones - orders to delete that are in force, ready to be applied to partitions.
 *
 * A tombstone's selector selects series by their labels and, if it has one, by profile type; a
 * report holds the values of all types that arrived together, and is deleted as a whole. Sample
 * labels of rows do not select: a series without the label has the value "".
 *
 * A set is immutable and counted: snapshots hold the one of their moment. Thread-safe.
 */
#ifndef FIRN_SERVER_PERSIST_MANIFEST_TOMBSTONES_H
#define FIRN_SERVER_PERSIST_MANIFEST_TOMBSTONES_H

#include "model/segment.h"
#include "model/selector.h"
#include "server/persist/manifest/manifest.h"

struct tombstone {
	uint64_t number;
	int64_t from_ns, to_ns;
	struct selector selector;
};

struct tombstones {
	struct tombstone *items; /* ascending by number */
	size_t count;
	_Atomic uint32_t references;
};

/* Those in force, with one reference. ERR_CORRUPT: a selector that cannot be read. */
MUST_USE int tombstones_of(const struct manifest_state *state, struct tombstones **ret,
			   struct err *err);
struct tombstones *tombstones_ref(struct tombstones *tombstones); /* accepts NULL */
void tombstones_unref(struct tombstones *tombstones);		  /* accepts NULL */

/* True if the tombstone may delete reports of the part. */
bool tombstone_meets(uint64_t number, int64_t from_ns, int64_t to_ns, const struct part_info *part);

/* True if an order with this selector means the series. */
bool tombstone_selects(const struct selector *selector, const struct tables_view *view,
		       uint32_t series);

/* The deleted reports of one partition of a part. */
struct tombstone_deletions {
	struct segment_deletion *items;
	uint32_t count;
};

/* `series`: the partition's dictionaries, without stacks. Nothing that matches: count 0. */
void tombstones_apply(const struct tombstones *tombstones, const struct part_info *part,
		      const struct tables_view *series, struct tombstone_deletions *ret);
void tombstone_deletions_free(struct tombstone_deletions *deletions);

#endif
