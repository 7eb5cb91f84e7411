/* SPDX-License-Identifier: Apache-2.0 */
/*
 * php_layout - offsets in PHP's functions, in bytes, as far as versions differ. Plain data, made by
 * php_file, used by php_code.
 */
#ifndef FIRN_AGENT_RUNTIME_PHP_PHP_LAYOUT_H
#define FIRN_AGENT_RUNTIME_PHP_PHP_LAYOUT_H

#include <stdint.h>

struct php_layout {
	uint16_t last;	  /* how many instructions */
	uint16_t opcodes; /* where they are */
	uint16_t file;	  /* the file's name; then the first and the last line */
};

#endif
