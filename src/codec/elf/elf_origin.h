/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_origin - which release of a program an ELF file is, and what made it, as the file itself
 * says:
 *
 *   .go.buildinfo   version and revision of the main module, Go's version (package
 *                   debug/buildinfo of Go's library: inline strings since 1.18, pointers before)
 *   .note.package   version of the package that it was built for
 *                   (systemd.io/PACKAGE_METADATA_FOR_EXECUTABLE_FILES)
 *   .comment        the compiler
 *
 * Reads with pread, bounded by ELF_ORIGIN_BYTES_MAX. What a file leaves out, and what is no sound
 * text, is empty. The texts are the caller's, by elf_origin_free.
 */
#ifndef FIRN_CODEC_ELF_ELF_ORIGIN_H
#define FIRN_CODEC_ELF_ELF_ORIGIN_H

#include "base/slice.h"
#include "base/strbuf.h"
#include "codec/elf/elf.h"

#define ELF_ORIGIN_BYTES_MAX ((size_t)1 << 20) /* of a module list */
#define ELF_ORIGIN_TEXT_MAX 256		       /* of one text; longer ones are left out */

struct elf_origin {
	char *version;	/* "v1.4.2", "2.36-9"; NULL = not told */
	char *revision; /* of the source in version control; "+dirty" behind it: with changes */
	char *compiler; /* "Go 1.19.8", "GCC 12.2.0", "Clang 14.0.6", "Rust 1.63.0" */
	bool is_static; /* it runs without the dynamic linker */
	bool is_stripped;
};

void elf_origin_read(int fd, const char *name, const struct elf_info *info, struct elf_origin *ret);
void elf_origin_free(struct elf_origin *origin); /* what it owns */

/* The main module's version and revision, out of Go's list of modules. */
void elf_origin_take_modules(struct elf_origin *origin, struct slice modules);

#endif
