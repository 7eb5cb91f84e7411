/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem - heap memory.
 *
 * Sizes that come from outside are checked against a budget before memory is asked for; what is
 * left is small, so a failing allocation means that the host is out of memory. These functions
 * then end the process with a message rather than return NULL: a server restarts and replays its
 * log, and nothing acknowledged is lost. All sizes go through checked arithmetic.
 */
#ifndef FIRN_BASE_MEM_H
#define FIRN_BASE_MEM_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Zeroed memory for count objects of size bytes. Free with free(). Never NULL. */
void *mem_calloc(size_t count, size_t size) __attribute__((returns_nonnull, malloc));

/* Resizes to count objects of size bytes; new bytes are undefined. Never NULL. */
void *mem_realloc(void *old, size_t count, size_t size) __attribute__((returns_nonnull));

/* A copy of the bytes with a NUL after it. */
char *mem_strndup(const char *text, size_t len) __attribute__((returns_nonnull, malloc));

#define MEM_HUGE_PAGE_BYTES ((size_t)2 << 20)

/*
 * Asks for huge pages where a range is large enough to be worth them: look-ups that hop about in it
 * then find the page's address in the processor's cache. Only a wish.
 */
void mem_prefer_huge_pages(void *data, size_t bytes);

/*
 * Gets the whole pages of a range that is about to be written: one call instead of a fault for
 * each. Where a fresh page is read before it is written, there are even two faults, and for the
 * second one all processors that run this process are stopped. Only a wish: not before Linux 5.14.
 */
void mem_populate(void *data, size_t bytes);

/*
 * Zeroed pages of their own, huge ones where the range is large enough, for what is hopped about in
 * at once: otherwise the first touch of each small page is a fault.
 */
void *mem_map_pages(size_t bytes) __attribute__((returns_nonnull));
void mem_unmap_pages(void *data, size_t bytes);

/* Reserves or maps a range that begins with a huge page, if it is large enough for one. */
void *mem_map_range(size_t bytes, int protection, int flags);

/*
 * For a process of many threads that must stay small; before the first of them starts. Otherwise
 * each thread keeps a heap of its own, and what large requests leave behind is never given back:
 * the allocator learns from them to cut the next ones out of its heaps.
 */
void mem_bound_heaps(void);

#define mem_new(type) ((type *)mem_calloc(1, sizeof(type)))
#define mem_new_array(type, count) ((type *)mem_calloc((count), sizeof(type)))

/*
 * Makes room for one more element in a (pointer, count, capacity) triple by doubling.
 * The pointer may move. The capacity's type must hold the doubled value.
 */
#define mem_grow(pointer, count, capacity)                                                         \
	do {                                                                                       \
		if ((count) == (capacity)) {                                                       \
			size_t grown_ = (capacity) ? 2 * (size_t)(capacity) : 8;                   \
                                                                                                   \
			(pointer) = mem_realloc((pointer), grown_, sizeof(*(pointer)));            \
			(capacity) = grown_;                                                       \
			assert((size_t)(capacity) == grown_);                                      \
		}                                                                                  \
	} while (0)

/* Gives back what was freed of the heaps; some ms when that is much. */
void mem_trim(void);

/* What of the process is in memory; all 0 where /proc cannot be read. Walks the heaps. */
struct mem_resident {
	int64_t unused_bytes; /* its own, beyond what the heaps have in use */
	int64_t mapped_bytes; /* of files, and shared */
};
struct mem_resident mem_resident(void);

#endif
