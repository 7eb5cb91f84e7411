/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a process, forged: the fuzzer's input from BASE on, as BPF and the agent read it.
 */
#ifndef FIRN_TESTS_IMAGE_FUZZ_H
#define FIRN_TESTS_IMAGE_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/line_table.h"
#include "agent/runtime/script_code.h"

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

/* What was read of a function stays within its bounds. */
static inline void check_script_code(const struct script_code *code, size_t text_max,
				     uint32_t (*line_at)(struct slice lines, uint32_t position))
{
	if (strlen(code->function) > text_max || strlen(code->file) > text_max ||
	    !slice_is_utf8(slice_of(code->function)) || !slice_is_utf8(slice_of(code->file)) ||
	    code->lines_len > 8 * (LINE_TABLE_LINES_MAX + 1))
		abort();
	for (uint32_t position = 0; position < 256; position++)
		if (line_at(slice_from(code->lines, code->lines_len), position) > INT32_MAX)
			abort();
}

#endif
