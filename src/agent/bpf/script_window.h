/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_window - reads an interpreter's frames many at a time, where they lie side by side; and
 * keeps what a sample has read of an object, which most stacks have in several frames; and knows
 * what earlier samples had.
 *
 * A read of another process's memory costs several times what a frame costs else. A window is one
 * read of one thread, which is stopped: what it holds is what single reads would give. It ends with
 * the page, so that it can be read wherever the frame at hand can. Where frames turn out to lie
 * apart, no more is read than the frame.
 *
 * Plain C over walk_read (walk.h), like script.h.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_WINDOW_H
#define FIRN_AGENT_BPF_SCRIPT_WINDOW_H

#include <stdbool.h>

#include "agent/bpf/row.h"
#include "agent/bpf/script_proof.h"

#define SCRIPT_FRAME_WORDS 16u	 /* a power of two: at most, of a frame */
#define SCRIPT_WINDOW_WORDS 128u /* a power of two */
#define SCRIPT_WINDOW_BYTES (8u * SCRIPT_WINDOW_WORDS)
#define SCRIPT_NEAR_BYTES 256u
#define SCRIPT_PAGE_BYTES 4096u

enum script_direction {
	SCRIPT_OUTWARDS_IS_UP,
	SCRIPT_OUTWARDS_IS_DOWN, /* the frame outside of one has a lower address */
};

struct script_window {
	__u64 start, bytes; /* of what is read */
	__u64 words[SCRIPT_WINDOW_WORDS + SCRIPT_FRAME_WORDS];
};

/* The next frame is expected at the address. */
static __always_inline void script_window_reset(struct script_window *window, __u64 address)
{
	window->start = address;
	window->bytes = 0;
}

/* Reads some bytes, a multiple of 8, and what lies next to them outwards. 0, or not resident. */
WALK_VERIFIED_ONCE long script_window_fill(struct script_window *window, __u64 address, __u32 bytes,
					   enum script_direction direction)
{
	__u64 in_page = address & (SCRIPT_PAGE_BYTES - 1), start = address, all;
	bool is_near;

	if (!window)
		return -1;
	is_near =
		address - window->start + SCRIPT_NEAR_BYTES < window->bytes + 2 * SCRIPT_NEAR_BYTES;
	bytes &= SCRIPT_WINDOW_BYTES - 8;
	all = SCRIPT_WINDOW_BYTES - 8;
	if (direction == SCRIPT_OUTWARDS_IS_DOWN) {
		if (all > in_page + bytes)
			all = in_page + bytes;
		start = address + bytes - all;
	} else if (all > SCRIPT_PAGE_BYTES - in_page) {
		all = SCRIPT_PAGE_BYTES - in_page;
	}
	all &= SCRIPT_WINDOW_BYTES - 8;
	window->start = start;
	window->bytes = all;
	if (is_near && all > bytes && !walk_read(window->words, all, start))
		return 0;
	window->start = address;
	window->bytes = bytes;
	if (!walk_read(window->words, bytes, address))
		return 0;
	window->bytes = 0;
	return -1;
}

/* True if some bytes from the address on, a multiple of 8, are in the window. */
static __always_inline bool script_window_read(struct script_window *window, __u64 address,
					       __u32 bytes, enum script_direction direction)
{
	__u64 at = address - window->start;

	if (address & 7)
		return false;
	if (at < window->bytes && window->bytes - at >= bytes)
		return true;
	return !script_window_fill(window, address, bytes, direction);
}

/* The words there: SCRIPT_FRAME_WORDS of them may be looked at. */
static __always_inline const __u64 *script_window_at(const struct script_window *window,
						     __u64 address)
{
	__u32 at = (__u32)(address - window->start) / 8;

	return &window->words[row_masked(at, SCRIPT_WINDOW_WORDS - 1)];
}

#define SCRIPT_SEEN 16u /* a power of two */

/* What an address was seen to be; with its address the key. */
enum script_seen_kind {
	SEEN_CODE = 1,
	SEEN_METHOD,
	SEEN_STATEMENT,
};

/* What was read of an object. */
struct script_seen {
	__u64 key;
	__u64 sample; /* in which one: it may be another object in the next */
	__u64 proof, more;
};

#define SCRIPT_HAD 65536u     /* a power of two: the functions that a host's processes often run */
#define SCRIPT_HAD_NS_LOG2 38 /* copies that were had this long ago, some 5 min, are new again */

/* The count at script_lost_place. The program in the kernel has the counts; tests may have none. */
#ifndef script_lost
#define script_lost(proof) 0u
#endif

/*
 * Hashes of the code that samples had, so that the agent hears at once of code that none had. All
 * CPUs share them: on each alone most code would be new for a long time. Two kinds of code have the
 * same hash once in 65536 times; the agent then hears of the second one later.
 */
static __u16 script_tags[SCRIPT_HAD];

struct script_had {
	__u64 salt;  /* the process or its family, and a round: in another one, all is new */
	__u32 lost;  /* copies of any code, in all; 0 of runtimes without copies */
	bool is_new; /* some of the sample at hand */
};

static __always_inline void script_had_start(struct script_had *had, __u32 process, __u64 round)
{
	had->salt = (__u64)process << 32 | (__u32)round;
	had->lost = 0;
	had->is_new = false;
}

/* `what` is a proof where there may be copies: one that was lost is new again. */
static __always_inline void script_had_note(struct script_had *had, __u64 what)
{
	__u64 salt = had->salt + (had->lost ? script_lost(what) : 0);
	__u64 hash = (what ^ salt * SCRIPT_PROOF_MIX) * SCRIPT_PROOF_MIX;
	__u16 *tag = &script_tags[row_masked((__u32)(hash >> 48), SCRIPT_HAD - 1)];

	if (*tag == (__u16)(hash >> 32))
		return; /* unwritten, it stays in all CPUs' caches */
	had->is_new = true;
	*tag = (__u16)(hash >> 32);
}

/* For script_lasting_begin: what is found there was noted since the last loss. */
static __always_inline __u64 script_had_round(const struct script_had *had)
{
	return had->salt ^ had->lost * SCRIPT_PROOF_MIX;
}

static __always_inline struct script_seen *script_seen_place(struct script_seen *seen, __u64 key)
{
	__u32 hash = (__u32)(key * SCRIPT_PROOF_MIX >> 32);

	return &seen[row_masked(hash, SCRIPT_SEEN - 1)];
}

#endif
