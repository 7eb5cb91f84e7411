/* SPDX-License-Identifier: Apache-2.0 */
/*
 * php_layout - offsets in PHP's functions, in bytes, as far as versions differ. Plain data, made by
 * php_file, used by php_code. Of the known versions `last` is in the word before `opcodes`, and
 * that SCRIPT_PHP_DISTANCE to SCRIPT_PHP_DISTANCE + 3 words before `file`.
 */
#ifndef FIRN_AGENT_RUNTIME_PHP_PHP_LAYOUT_H
#define FIRN_AGENT_RUNTIME_PHP_PHP_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/bpf/shared.h"

struct php_layout {
	uint16_t last;	  /* how many instructions */
	uint16_t opcodes; /* where they are */
	uint16_t file;	  /* the file's name; then the first and the last line */
};

/* For the kernel's program: script_php_layout's `file`. */
static inline uint8_t php_layout_file(const struct php_layout *layout)
{
	uint32_t words = (uint32_t)(layout->file - layout->opcodes) / 8;
	bool is_low = layout->last % 8 == 0;

	return (uint8_t)(layout->file / 8 | (is_low ? SCRIPT_PHP_LAST_IS_LOW : 0) |
			 (words - SCRIPT_PHP_DISTANCE) << 6);
}

#endif
