/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_content - finds V8 in a binary that exports nothing of it, and is stripped.
 *
 * V8 starts from a snapshot of its heap, which most programs have among their constants. Its head
 * has V8's version, and a number before its data:
 *
 *   contexts, can it be rehashed, two checksums; the version in 64 bytes; offsets; 0xc0de.... at a
 *   multiple of eight
 *
 * Programs with the snapshot in a file of its own (Chromium, Electron) give no version.
 *
 * Cheap for other files: those with little code, or without some functions that V8 imports, are
 * read no further. Of others up to V8_CONTENT_BYTES_MAX of constants are searched for a sentence
 * that V8 has (some 10 ms), and only then for the rest (some 25 ms). The file is hostile.
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_CONTENT_H
#define FIRN_AGENT_RUNTIME_V8_V8_CONTENT_H

#include "agent/runtime/elf_exports.h"

#define V8_CONTENT_BYTES_MAX ((uint64_t)96 << 20)

struct v8_content {
	uint32_t major, minor, build; /* 0, 0, 0 = not known */
	bool is_compressed;	      /* pointers are */
};

/* False when V8 is not in the file. */
bool v8_content_find(const struct elf_exports *symbols, struct v8_content *ret);

/* The head of a snapshot, of `len` bytes, whose number is at `at`. */
bool v8_content_read_head(const uint8_t *bytes, size_t len, size_t at, struct v8_content *ret);

#endif
