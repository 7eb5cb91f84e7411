/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_cache - the parts of the store, and those in use under a budget of memory and files.
 *
 * A part is opened when it is first needed and shared by all who pin it. When decoded dictionaries
 * exceed the budget, those that no segment uses are freed, least recently used first (stacks as
 * soon as their last user drops them), and so are whole parts that nobody pins. part_cache_age
 * frees those of parts that nobody used since the last call. Blocks are not cached here: the
 * operating system's page cache does that. A dropped part leaves the list at once and memory with
 * its last pin.
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

/*
 * The manifest does not name the part any more. Its file is removed once all who pinned the part
 * have it open.
 */
void part_cache_drop(struct part_cache *cache, uint64_t number);

/* Code that reads parts on its own found the part damaged. */
void part_cache_note_damaged(struct part_cache *cache, uint64_t number, const struct err *err);

/* Pins every part that may hold reports of [from, to), open or not. Free *ret_parts with free().
 */
size_t part_cache_select(struct part_cache *cache, int64_t from_ns, int64_t to_ns,
			 struct part ***ret_parts);

/* Opens a pinned part: its reader stays until it is unpinned. ERR_CORRUPT (and `damaged` from now
 * on) or ERR_IO. */
MUST_USE int part_cache_load(struct part_cache *cache, struct part *part, struct err *err);

/* A hint that the pinned part will be loaded (part_ahead.h). */
void part_cache_expect(struct part_cache *cache, const struct part *part);

void part_cache_age(struct part_cache *cache);

/* Call it after the part's segments were dropped. Damage that the reader found takes effect now. */
void part_cache_unpin(struct part_cache *cache, struct part *part);

/* The number of a part whose damage the manifest does not know yet, once each; 0 = none. */
uint64_t part_cache_take_damaged(struct part_cache *cache);

#endif
