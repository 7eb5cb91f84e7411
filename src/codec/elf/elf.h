/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf - what firn needs of an ELF file's headers: identity and the map from file offsets to
 * virtual addresses. Reads with pread (never maps: a file truncated under us must not kill us),
 * bounded, 64-bit and 32-bit, both byte orders. Symbols and DWARF are server/resolve's work.
 */
#ifndef FIRN_CODEC_ELF_ELF_H
#define FIRN_CODEC_ELF_ELF_H

#include "base/err.h"
#include "base/slice.h"

#define ELF_BUILD_ID_TEXT_BYTES 129 /* hex with NUL; longer notes are cut to 64 bytes */
#define ELF_SEGMENTS_MAX 64

enum elf_id_kind {
	ELF_ID_NONE,
	ELF_ID_GNU, /* .note.gnu.build-id */
	ELF_ID_GO,  /* first 128 bits of SHA-256(text of Go's build id note) */
	/* First 128 bits of SHA-256(first 4096 bytes, last 4096, length as big-endian u64). */
	ELF_ID_HASH,
};

struct elf_segment { /* PT_LOAD */
	uint64_t offset, address, file_bytes, memory_bytes;
	bool executable;
};

struct elf_info {
	char build_id[ELF_BUILD_ID_TEXT_BYTES]; /* lower-case hex */
	enum elf_id_kind id_kind;
	uint16_t machine, type; /* e_machine, e_type */
	struct elf_segment segments[ELF_SEGMENTS_MAX];
	size_t segments_count;
	uint64_t file_bytes;
};

/* Reads from an open file; `name` is for messages. ERR_INVALID when it is no ELF file. */
int elf_read_info(int fd, const char *name, struct elf_info *ret, struct err *err);

/* The same from bytes in memory (vdso, fuzzing). */
int elf_parse_info(struct slice image, const char *name, struct elf_info *ret, struct err *err);

#define ELF_SECTION_NAME_BYTES 32

struct elf_section_info {
	char name[ELF_SECTION_NAME_BYTES]; /* cut */
	uint64_t offset, file_bytes;	   /* 0 bytes: the file leaves its content out */
};

typedef void elf_section_visit_f(void *context, const struct elf_section_info *section);

/*
 * Calls `visit` for each section. ERR_INVALID when the headers or the content of a section lie
 * after the end of the file: it was cut short.
 */
int elf_each_section(int fd, const char *name, elf_section_visit_f *visit, void *context,
		     struct err *err);
int elf_parse_sections(struct slice image, const char *name, elf_section_visit_f *visit,
		       void *context, struct err *err);

/*
 * False for a relocatable file. What a process executes of one has no addresses but those that the
 * process gave it, such as WebAssembly that was compiled before: it is generated code.
 */
bool elf_is_linked(const struct elf_info *info);

/* File offset <-> virtual address through the PT_LOAD that holds it; false when none does. */
bool elf_offset_to_address(const struct elf_info *info, uint64_t offset, uint64_t *ret);
bool elf_address_to_offset(const struct elf_info *info, uint64_t address, uint64_t *ret);

/* True if the file says where in it the code is, or was: many separate debug files do not. */
bool elf_has_offsets(const struct elf_info *info);

/*
 * Restores the offsets of segments in a separate debug file without code (objcopy --only-keep-debug
 * loses them): puts each segment where linkers do, at the first offset after the previous one that
 * fits its address. Right for 1,953 of 1,955 executable segments of a Debian system; so use it only
 * if the program itself is missing. Leaves other files alone.
 */
void elf_restore_offsets(struct elf_info *info);

#endif
