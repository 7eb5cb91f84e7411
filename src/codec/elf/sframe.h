/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sframe - the .sframe section (Simple Frame format) as unwind rules.
 *
 * Versions 1 (binutils 2.40), 2 (2.41) and 3 (2.46, with flexible entries, signal frames and
 * outermost frames), little-endian, for x86-64 and arm64. Function entries may be in any order.
 *
 * Reads through section_reader: memory is the struct, whatever the section's size. A function
 * whose entry is damaged is left out and counted. One thread at a time.
 *
 * Source: The SFrame Format, versions 1 to 3, sourceware.org/binutils/docs/sframe-spec.html.
 */
#ifndef FIRN_CODEC_ELF_SFRAME_H
#define FIRN_CODEC_ELF_SFRAME_H

#include "codec/elf/section_reader.h"
#include "codec/elf/unwind_sink.h"

struct sframe {
	uint16_t machine; /* e_machine */
	uint8_t version;
	bool starts_from_field;	  /* functions' starts count from the field, not the section */
	uint32_t functions_count; /* function descriptor entries */
	uint32_t damaged_count;	  /* functions left out by sframe_functions */
	int32_t ra_offset;	  /* from the CFA, on x86-64 */
	uint64_t functions_at, rows_at, rows_end; /* offsets in the section */
	struct section_reader functions, rows;
};

/*
 * ERR_INVALID when the section is none of this format, ERR_UNSUPPORTED when it is of a version or
 * machine not known. The struct is 32 KiB: not for a small stack. Nothing to close.
 */
int sframe_open(struct sframe *ret, const struct section_reader *section, uint16_t machine,
		struct err *err);

int sframe_functions(struct sframe *table, const struct unwind_function_sink *sink,
		     struct err *err);

/* The rows of a function that sframe_functions listed, at most SFRAME_ROWS_MAX. */
#define SFRAME_ROWS_MAX 65536u
int sframe_rows(struct sframe *table, uint64_t cookie, const struct unwind_row_sink *sink,
		struct err *err);

#endif
