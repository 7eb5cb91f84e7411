/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_extract - what symbols need of an ELF file, as a smaller ELF file that is never written
 * anywhere: a plan of pieces, read by offset while it is sent.
 *
 * Kept are the headers, the segments' places in the file (so that offsets can be turned into
 * addresses), notes (the build id), symbol tables with their strings, DWARF but for what only
 * debuggers read (where variables are, macros, indexes of names), .gnu_debugdata,
 * links to other debug files, where functions are by .eh_frame and what the procedure linkage table
 * calls, and Go's function table with what its inlined calls need. Every other section stays in the
 * table with its address and size, but without content (SHT_NOBITS), as `objcopy --only-keep-debug`
 * leaves it. The same file gives the same bytes everywhere.
 *
 * 32 and 64 bit, both byte orders. The file is hostile: memory is bounded by the limits below and
 * does not depend on the size of its content. Layout: System V gABI, chapters 4 and 5.
 */
#ifndef FIRN_CODEC_ELF_ELF_EXTRACT_H
#define FIRN_CODEC_ELF_ELF_EXTRACT_H

#include "base/err.h"
#include "base/slice.h"

#define ELF_EXTRACT_SECTIONS_MAX 65536u
#define ELF_EXTRACT_NAMES_BYTES_MAX ((size_t)4 << 20)

struct elf_extract;

/*
 * `fd` stays the caller's, and open until elf_extract_close. ERR_INVALID when it is no ELF file,
 * ERR_UNSUPPORTED when it has no sections, ERR_LIMIT over `bytes_max` or the limits above.
 */
int elf_extract_open(int fd, const char *name, uint64_t bytes_max, struct elf_extract **ret,
		     struct err *err);
void elf_extract_close(struct elf_extract *extract); /* accepts NULL */

uint64_t elf_extract_bytes(const struct elf_extract *extract);
/* The same for the same headers and sections (their names, sizes, addresses): nothing is read. */
uint64_t elf_extract_fingerprint(const struct elf_extract *extract);
bool elf_extract_has_debug_info(const struct elf_extract *extract); /* .debug_info is in it */

/* Reads exactly `len` bytes, which must lie inside. ERR_IO when the file has become shorter. */
int elf_extract_read(const struct elf_extract *extract, uint64_t at, void *into, size_t len,
		     struct err *err);

#endif
