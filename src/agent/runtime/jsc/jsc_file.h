/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsc_file - recognises Bun, which has JavaScriptCore in it, and knows the offsets of its version.
 *
 * The binary exports nothing that only it has, but it has a section for JavaScriptCore's
 * interpreter. Its version is text in its read-only data, of which JSC_FILE_SEARCHED_MAX bytes are
 * looked at, up to the second place: both must say the same.
 */
#ifndef FIRN_AGENT_RUNTIME_JSC_JSC_FILE_H
#define FIRN_AGENT_RUNTIME_JSC_JSC_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

#define JSC_FILE_SEARCHED_MAX (64u << 20)

/* Sets the kind to RUNTIME_KINDS if it is another program; otherwise all but the kind, or
 * ret->problem. */
void jsc_file_read(const struct elf_exports *symbols, const struct elf_export *mark,
		   struct runtime_file *ret);

#endif
