/* SPDX-License-Identifier: Apache-2.0 */
/*
 * php_file - reads from a binary with PHP (php, php-fpm, libphp, programs that embed it): its
 * version, the place of the innermost frame, offsets in functions, and the evaluation loop.
 *
 * The layout comes from a table by extension API number, which is in the binary as text; the place
 * of the frame from the code of a small exported function. Works for stripped files. Reads at most
 * PHP_TEXT_BYTES_MAX of each segment.
 */
#ifndef FIRN_AGENT_RUNTIME_PHP_PHP_FILE_H
#define FIRN_AGENT_RUNTIME_PHP_PHP_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

#define PHP_TEXT_BYTES_MAX ((uint64_t)64 << 20)

/* `loop` is the symbol execute_ex. Sets all but the kind; ret->problem where it fails. */
void php_file_read(const struct elf_exports *symbols, const struct elf_export *loop,
		   struct runtime_file *ret);

#endif
