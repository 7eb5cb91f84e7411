/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forged_memory - the memory of a process, laid out by hand, for tests of who reads it: words are
 * put one behind another from BASE on. What reads it for a walk of the kernel side is walk_read.
 */
#ifndef FIRN_TESTS_UNIT_AGENT_FORGED_MEMORY_H
#define FIRN_TESTS_UNIT_AGENT_FORGED_MEMORY_H

#include <linux/types.h>

#include "agent/runtime/memory_reader.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define BASE 0x10000ull
#ifndef IMAGE_WORDS
#define IMAGE_WORDS 16384u
#endif

#ifndef IMAGE_PUT_END /* what lies behind is laid out otherwise */
#define IMAGE_PUT_END (BASE + 8 * IMAGE_WORDS)
#endif

static uint64_t image[IMAGE_WORDS];
static size_t used; /* words */
static size_t walk_reads;

static bool read_image(void *context, uint64_t address, void *to, size_t len)
{
	(void)context;
	if (address < BASE || address - BASE > sizeof(image) ||
	    len > sizeof(image) - (address - BASE))
		return false;
	memcpy(to, (const uint8_t *)image + (address - BASE), len);
	return true;
}

static const struct memory_reader image_memory = { read_image, NULL };

static long walk_read(void *to, __u32 bytes, __u64 address)
{
	walk_reads++;
	return read_image(NULL, address, to, bytes) ? 0 : -1;
}

static uint64_t put(const uint64_t *words, size_t count)
{
	uint64_t at = BASE + 8 * used;

	assert_true(at + 8 * count <= IMAGE_PUT_END);
	memcpy(image + used, words, 8 * count);
	used += count;
	return at;
}

/* Empty but for `words`, which are left out at its start. */
static void clear_image(size_t words)
{
	memset(image, 0, sizeof(image));
	used = words;
}

#endif
