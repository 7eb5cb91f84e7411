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
 * Asks for huge pages if the range is large enough: random look-ups in it then miss the TLB less
 * often. A hint only.
 */
void mem_prefer_huge_pages(void *data, size_t bytes);

/*
 * Populates the whole pages of a range that is about to be written: one call instead of a fault per
 * page. (A fresh page that is read before it is written even faults twice, and the second fault
 * interrupts all CPUs that run this process.) A hint only; no effect before Linux 5.14.
 */
void mem_populate(void *data, size_t bytes);

/*
 * Maps zeroed pages, huge ones if the range is large enough, for tables that are accessed at random
 * at once: otherwise the first touch of each small page is a fault.
 */
void *mem_map_pages(size_t bytes) __attribute__((returns_nonnull));
void mem_unmap_pages(void *data, size_t bytes);

/* Reserves or maps a range that begins with a huge page, if it is large enough for one. */
void *mem_map_range(size_t bytes, int protection, int flags);

/*
 * Bounds the number of heaps, and gives large blocks pages of their own. For a process of many
 * threads that must stay small; call it before the first thread starts. Otherwise each thread keeps
 * a heap, and the allocator, which adapts to large requests, never returns their memory.
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

/* Returns freed heap memory to the system; takes some ms if there is much. */
void mem_trim(void);

/* The resident memory of this process; all 0 if /proc cannot be read. Walks the heaps. */
struct mem_resident {
	int64_t unused_bytes; /* its own, beyond what the heaps have in use */
	int64_t mapped_bytes; /* of files, and shared */
};
struct mem_resident mem_resident(void);

#endif
