/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a process, forged: the fuzzer's input from BASE on, as BPF and the agent read it.
 */
#ifndef FIRN_TESTS_IMAGE_FUZZ_H
#define FIRN_TESTS_IMAGE_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BASE 0x1000ull /* so low that pointers of few bytes lead into it */

static const uint8_t *image;
static size_t image_bytes;

static inline bool read_image(void *context, uint64_t address, void *to, size_t len)
{
	(void)context;
	if (address < BASE || address - BASE > image_bytes || len > image_bytes - (address - BASE))
		return false;
	memcpy(to, image + (address - BASE), len);
	return true;
}

static inline long walk_read(void *to, uint32_t bytes, uint64_t address)
{
	return read_image(NULL, address, to, bytes) ? 0 : -1;
}

#endif
