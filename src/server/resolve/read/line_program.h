/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_program - decodes one line number table of .debug_line (DWARF 2 to 5, 32 and 64 bit).
 *
 * line_program_open reads the header with its lists of directories and files;
 * line_program_next then gives rows one by one, without keeping them. Every read is bounded by
 * the table's own length. Slices point into the sections given.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_LINE_PROGRAM_H
#define FIRN_SERVER_RESOLVE_READ_LINE_PROGRAM_H

#include "base/err.h"
#include "base/slice.h"

struct line_sections {
	struct slice line, line_str, str; /* .debug_line, .debug_line_str, .debug_str */
	bool big_endian;
};

struct line_file {
	struct slice name;
	uint64_t directory; /* index into directories */
};

struct line_row {
	uint64_t address;
	uint64_t file; /* index into files; may be out of range */
	uint32_t line;
	bool end_sequence; /* address is the first one behind the sequence */
};

struct line_program {
	struct line_sections sections;
	struct slice bytes;	       /* header and program, without the length */
	size_t at;		       /* next byte of `bytes` */
	const uint8_t *operand_counts; /* of the standard opcodes, from 1 */
	struct slice *directories;
	struct line_file *files; /* index 0 is unused below DWARF 5 */
	size_t directories_count, directories_capacity, files_count, files_capacity;
	struct line_row row;
	uint16_t version;
	uint8_t offset_bytes, address_bytes;
	uint8_t min_instruction_bytes, line_range, opcode_base;
	int8_t line_base;
};

/* `address_bytes` is the unit's (DWARF 5 says it in the table again). Close also after a failure.
 */
int line_program_open(struct line_program *program, const struct line_sections *sections,
		      uint64_t offset, uint8_t address_bytes, struct err *err);
void line_program_close(struct line_program *program);

/* Where the table at `offset` ends, and the next one may start; 0 when it is cut off. */
uint64_t line_program_end(const struct line_sections *sections, uint64_t offset);

/* False at the end of the program, or where it cannot be read further. */
bool line_program_next(struct line_program *program, struct line_row *ret);

#endif
