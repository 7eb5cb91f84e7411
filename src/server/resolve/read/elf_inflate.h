/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_inflate - writes a copy of an ELF file with its compressed debug sections unpacked.
 *
 * Handles SHF_COMPRESSED with zlib or zstd, and the older .zdebug_* sections, without having them
 * in memory. The new file has the content of all sections, at new offsets; segments keep their
 * headers but not their content. Writes no more than allowed and announced.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_ELF_INFLATE_H
#define FIRN_SERVER_RESOLVE_READ_ELF_INFLATE_H

#include <gelf.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/slice.h"

/* True if a debug section is compressed. */
bool elf_inflate_is_needed(Elf *elf);

/* `image` is the whole file; `fd` an empty one. ERR_LIMIT over max_bytes of unpacked sections. */
int elf_inflate(Elf *elf, struct slice image, uint64_t max_bytes, int fd, struct err *err);

#endif
