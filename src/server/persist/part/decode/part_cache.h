/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_cache - the parts of the store, and those in use under a budget of memory and files.
 *
 * A part is opened when it is first needed and shared by all who pin it. When dictionaries that
 * were decoded exceed the budget, the ones that no segment uses are given up, in the order of last
 * use (stacks at once when their last user leaves them); whole parts too when nobody pins them. So
 * are those of parts that nobody has asked for since part_cache_age was called last.
 * Blocks are not kept: the operating system's page cache is. A dropped part leaves the list at once
 * and memory with its last pin.
 *
 * Thread-safe: one lock inside, never held while reading a file; it ranks behind the store's and
 * before those of part_reader.
 */
#ifndef FIRN_SERVER_PERSIST_PART_DECODE_PART_CACHE_H
#define FIRN_SERVER_PERSIST_PART_DECODE_PART_CACHE_H

#include "base/lock.h"
#include "server/persist/part/decode/part_reader.h"

#define PART_CACHE_BYTES_DEFAULT ((uint64_t)64 << 20)
#define PART_CACHE_FILES_MAX 256u

struct part {
	struct part_info info;	    /* `damaged` is guarded by the lock */
	struct part_reader *reader; /* while it is pinned and open */
	uint32_t pins;		    /* guarded, as all below */
	bool opening, dropped;
	bool removed;	    /* its file has no name any more */
	bool newly_damaged; /* the manifest does not know yet */
	uint64_t last_use;
};

struct part_cache {
	const struct vfs *vfs;
	const char *dir;
	bool read_only; /* a missing file was dropped by its owner meanwhile, not damaged */
	struct part_budget budget;
	struct lock lock;
	struct lock_condition opened;
	struct part **parts; /* in the order in which they were added */
	size_t count, capacity;
	uint64_t uses, aged_uses; /* until now, and when it was aged */
};

void part_cache_init(struct part_cache *cache, const struct vfs *vfs, const char *dir,
		     uint64_t budget_bytes, bool read_only);
void part_cache_fini(struct part_cache *cache);

void part_cache_add(struct part_cache *cache, const struct part_info *info);

/* The manifest does not know the part any more: its file goes too, once all who pinned it have it
 * open. */
void part_cache_drop(struct part_cache *cache, uint64_t number);

/* Somebody found the part damaged who read it by himself. */
void part_cache_note_damaged(struct part_cache *cache, uint64_t number, const struct err *err);

/* Pins every part that may hold reports of [from, to), open or not. Free *ret_parts with free().
 */
size_t part_cache_select(struct part_cache *cache, int64_t from_ns, int64_t to_ns,
			 struct part ***ret_parts);

/* Opens a pinned part: its reader stays until it is unpinned. ERR_CORRUPT (and `damaged` from now
 * on) or ERR_IO. */
MUST_USE int part_cache_load(struct part_cache *cache, struct part *part, struct err *err);

void part_cache_age(struct part_cache *cache);

/* After its segments were dropped. Damage that the reader found counts from now on. */
void part_cache_unpin(struct part_cache *cache, struct part *part);

/* The number of a part whose damage the manifest does not know yet, once each; 0 = none. */
uint64_t part_cache_take_damaged(struct part_cache *cache);

#endif
