/* SPDX-License-Identifier: Apache-2.0 */
/*
 * php_file - what is found out of a binary that has PHP in it (php, php-fpm, libphp, programs that
 * embed it): its version, where the innermost frame is named, where things are in its functions,
 * and the evaluation loop.
 *
 * The layout comes from a table by the number of the interface to extensions, which is in the
 * binary as text; the place of the frame from the code of a small exported function. Works in
 * stripped files. Reads at most PHP_TEXT_BYTES_MAX of each segment.
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
