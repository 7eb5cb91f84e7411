/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF 5, section 6.2 (6.2.4 for the header, 6.2.5 for the program); the header of older
 * versions: DWARF 4, 6.2.4.
 */
#include "server/resolve/read/line_program.h"

#include <dwarf.h>
#include <inttypes.h>

#include "base/mem.h"

#define ENTRIES_MAX ((size_t)1 << 20) /* directories, files */
#define FORMATS_MAX 255

/* One column of a DWARF 5 list. */
struct entry_format {
	uint64_t content, form;
};

static size_t bytes_left(const struct line_program *program)
{
	return program->bytes.len - program->at;
}

static bool skip(struct line_program *program, uint64_t len)
{
	if (len > bytes_left(program))
		return false;
	program->at += len;
	return true;
}

static bool read_uint(struct line_program *program, unsigned bytes, uint64_t *ret)
{
	const uint8_t *p = (const uint8_t *)program->bytes.data + program->at;
	uint64_t value = 0;

	if (!skip(program, bytes))
		return false;
	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | p[program->sections.big_endian ? i : bytes - 1 - i];
	*ret = value;
	return true;
}

static bool read_byte(struct line_program *program, uint8_t *ret)
{
	uint64_t value;

	if (!read_uint(program, 1, &value))
		return false;
	*ret = (uint8_t)value;
	return true;
}

static bool read_leb(struct line_program *program, bool is_signed, uint64_t *ret)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		if (!read_byte(program, &byte))
			return false;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && (byte & 0x40) && shift < 64)
		value |= UINT64_MAX << shift;
	*ret = value;
	return true;
}

static bool text_at(struct slice section, uint64_t offset, struct slice *ret)
{
	size_t len;

	if (offset >= section.len)
		return false;
	*ret = slice_tail(section, offset);
	len = slice_find_byte(*ret, 0);
	if (len == SIZE_MAX)
		return false;
	ret->len = len;
	return true;
}

static bool read_text(struct line_program *program, struct slice *ret)
{
	return text_at(program->bytes, program->at, ret) && skip(program, ret->len + 1);
}

static bool add_directory(struct line_program *program, struct slice directory)
{
	if (program->directories_count == ENTRIES_MAX)
		return false;
	mem_grow(program->directories, program->directories_count, program->directories_capacity);
	program->directories[program->directories_count++] = directory;
	return true;
}

static bool add_file(struct line_program *program, const struct line_file *file)
{
	if (program->files_count == ENTRIES_MAX)
		return false;
	mem_grow(program->files, program->files_count, program->files_capacity);
	program->files[program->files_count++] = *file;
	return true;
}

/* The part of a file entry behind its name: directory, time, length. */
static bool read_file_tail(struct line_program *program, struct line_file *file)
{
	uint64_t time, len;

	return read_leb(program, false, &file->directory) && read_leb(program, false, &time) &&
	       read_leb(program, false, &len) && add_file(program, file);
}

/* Versions 2 to 4: lists that an empty name ends; directory 0 is the unit's own. */
static bool read_old_lists(struct line_program *program)
{
	struct line_file file = { .name = { "", 0 } };
	struct slice directory = { "", 0 };

	do {
		if (!add_directory(program, directory) || !read_text(program, &directory))
			return false;
	} while (directory.len);
	if (!add_file(program, &file))
		return false;
	for (;;) {
		if (!read_text(program, &file.name))
			return false;
		if (!file.name.len)
			return true;
		if (!read_file_tail(program, &file))
			return false;
	}
}

static bool read_block(struct line_program *program, unsigned len_bytes)
{
	uint64_t len;

	if (len_bytes ? !read_uint(program, len_bytes, &len) : !read_leb(program, false, &len))
		return false;
	return skip(program, len);
}

/* Reads a value of a form that 6.2.4.1 allows; texts into *text, numbers into *number. */
static bool read_form(struct line_program *program, uint64_t form, struct slice *text,
		      uint64_t *number)
{
	uint64_t offset;

	switch (form) {
	case DW_FORM_string:
		return read_text(program, text);
	case DW_FORM_line_strp:
		return read_uint(program, program->offset_bytes, &offset) &&
		       text_at(program->sections.line_str, offset, text);
	case DW_FORM_strp:
		return read_uint(program, program->offset_bytes, &offset) &&
		       text_at(program->sections.str, offset, text);
	case DW_FORM_udata:
		return read_leb(program, false, number);
	case DW_FORM_data1:
		return read_uint(program, 1, number);
	case DW_FORM_data2:
		return read_uint(program, 2, number);
	case DW_FORM_data4:
		return read_uint(program, 4, number);
	case DW_FORM_data8:
		return read_uint(program, 8, number);
	case DW_FORM_data16:
		return skip(program, 16);
	case DW_FORM_block:
		return read_block(program, 0);
	case DW_FORM_block1:
		return read_block(program, 1);
	case DW_FORM_block2:
		return read_block(program, 2);
	case DW_FORM_block4:
		return read_block(program, 4);
	default:
		return false;
	}
}

static bool read_entry(struct line_program *program, const struct entry_format *formats,
		       unsigned formats_count, struct line_file *ret)
{
	struct line_file entry = { .name = { "", 0 } };

	for (unsigned i = 0; i < formats_count; i++) {
		struct slice text = { "", 0 };
		uint64_t number = 0;

		if (!read_form(program, formats[i].form, &text, &number))
			return false;
		if (formats[i].content == DW_LNCT_path)
			entry.name = text;
		else if (formats[i].content == DW_LNCT_directory_index)
			entry.directory = number;
	}
	*ret = entry;
	return true;
}

/* Version 5: the list says itself what its entries look like. */
static bool read_new_list(struct line_program *program, bool directories)
{
	struct entry_format formats[FORMATS_MAX];
	uint8_t formats_count;
	uint64_t count;

	if (!read_byte(program, &formats_count))
		return false;
	for (unsigned i = 0; i < formats_count; i++)
		if (!read_leb(program, false, &formats[i].content) ||
		    !read_leb(program, false, &formats[i].form))
			return false;
	if (!read_leb(program, false, &count) || (count && !formats_count))
		return false;
	for (uint64_t i = 0; i < count; i++) {
		struct line_file entry;

		if (!read_entry(program, formats, formats_count, &entry))
			return false;
		if (directories ? !add_directory(program, entry.name) : !add_file(program, &entry))
			return false;
	}
	return true;
}

/* The bytes of the table at `offset`, behind its length. */
static bool find_table(struct line_program *program, uint64_t offset)
{
	uint64_t len;

	program->bytes = slice_tail(program->sections.line, offset < SIZE_MAX ? offset : SIZE_MAX);
	program->offset_bytes = 4;
	if (!read_uint(program, 4, &len))
		return false;
	if (len == 0xffffffff) {
		program->offset_bytes = 8;
		if (!read_uint(program, 8, &len))
			return false;
	}
	if (len > bytes_left(program))
		return false;
	program->bytes = slice_from(program->bytes.data + program->at, len);
	program->at = 0;
	return true;
}

uint64_t line_program_end(const struct line_sections *sections, uint64_t offset)
{
	struct line_program program = { .sections = *sections };

	if (!find_table(&program, offset))
		return 0;
	return (uint64_t)(program.bytes.data + program.bytes.len - sections->line.data);
}

static bool read_header(struct line_program *program)
{
	uint64_t version, header_len, program_at;
	uint8_t operations, is_statement, line_base, selector_bytes;

	if (!read_uint(program, 2, &version) || version < 2 || version > 5)
		return false;
	program->version = (uint16_t)version;
	if (version == 5 &&
	    (!read_byte(program, &program->address_bytes) || !read_byte(program, &selector_bytes)))
		return false;
	if (!read_uint(program, program->offset_bytes, &header_len) ||
	    header_len > bytes_left(program))
		return false;
	program_at = program->at + header_len;
	if (!read_byte(program, &program->min_instruction_bytes) ||
	    (version >= 4 && !read_byte(program, &operations)) ||
	    !read_byte(program, &is_statement) || !read_byte(program, &line_base) ||
	    !read_byte(program, &program->line_range) ||
	    !read_byte(program, &program->opcode_base) || !program->opcode_base)
		return false;
	program->line_base = (int8_t)line_base;
	program->operand_counts = (const uint8_t *)program->bytes.data + program->at;
	if (!skip(program, program->opcode_base - 1u))
		return false;
	if (version == 5 ? !read_new_list(program, true) || !read_new_list(program, false)
			 : !read_old_lists(program))
		return false;
	program->at = program_at;
	return true;
}

static void begin_sequence(struct line_program *program)
{
	program->row = (struct line_row){ .file = 1, .line = 1 };
}

int line_program_open(struct line_program *program, const struct line_sections *sections,
		      uint64_t offset, uint8_t address_bytes, struct err *err)
{
	*program = (struct line_program){ .sections = *sections, .address_bytes = address_bytes };
	if (!find_table(program, offset))
		return err_set(err, ERR_INVALID,
			       "read line table at offset 0x%" PRIx64 ": it is truncated", offset);
	if (!read_header(program))
		return err_set(err, ERR_INVALID,
			       "read line table at offset 0x%" PRIx64 ": bad header near byte %zu",
			       offset, program->at);
	begin_sequence(program);
	return 0;
}

void line_program_close(struct line_program *program)
{
	free(program->directories);
	free(program->files);
	*program = (struct line_program){ 0 };
}

static void advance(struct line_program *program, uint64_t operations)
{
	program->row.address += operations * program->min_instruction_bytes;
}

/* Opcodes behind a 0 byte; the unknown ones are skipped by their length. */
static bool run_extended(struct line_program *program)
{
	uint64_t len, value;
	uint8_t opcode;
	size_t end;

	if (!read_leb(program, false, &len) || !len || len > bytes_left(program))
		return false;
	end = program->at + len;
	if (!read_byte(program, &opcode))
		return false;
	if (opcode == DW_LNE_end_sequence) {
		program->row.end_sequence = true;
	} else if (opcode == DW_LNE_set_address) {
		if (len - 1 > sizeof(uint64_t) || !read_uint(program, (unsigned)len - 1, &value))
			return false;
		program->row.address = value;
	} else if (opcode == DW_LNE_define_file) {
		struct line_file file;

		if (!read_text(program, &file.name) || !read_file_tail(program, &file))
			return false;
	}
	program->at = end;
	return true;
}

static bool skip_operands(struct line_program *program, uint8_t opcode)
{
	uint64_t operand;

	for (unsigned i = 0; i < program->operand_counts[opcode - 1]; i++)
		if (!read_leb(program, false, &operand))
			return false;
	return true;
}

/* Opcodes from 1 below opcode_base. */
static bool run_standard(struct line_program *program, uint8_t opcode)
{
	struct line_row *row = &program->row;
	uint64_t value;

	switch (opcode) {
	case DW_LNS_advance_pc:
		if (!read_leb(program, false, &value))
			return false;
		advance(program, value);
		return true;
	case DW_LNS_advance_line:
		if (!read_leb(program, true, &value))
			return false;
		row->line += (uint32_t)value;
		return true;
	case DW_LNS_set_file:
		return read_leb(program, false, &row->file);
	case DW_LNS_set_column:
		return read_leb(program, false, &value);
	case DW_LNS_const_add_pc:
		if (!program->line_range)
			return false;
		advance(program, (255u - program->opcode_base) / program->line_range);
		return true;
	case DW_LNS_fixed_advance_pc:
		if (!read_uint(program, 2, &value))
			return false;
		row->address += value;
		return true;
	case DW_LNS_copy:
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		return true;
	default:
		return skip_operands(program, opcode);
	}
}

static bool run_special(struct line_program *program, uint8_t opcode)
{
	unsigned adjusted = opcode - program->opcode_base;

	if (!program->line_range)
		return false;
	advance(program, adjusted / program->line_range);
	program->row.line += (uint32_t)(program->line_base + (int)(adjusted % program->line_range));
	return true;
}

static bool run_opcode(struct line_program *program, uint8_t opcode)
{
	if (opcode >= program->opcode_base)
		return run_special(program, opcode);
	return opcode ? run_standard(program, opcode) : run_extended(program);
}

bool line_program_next(struct line_program *program, struct line_row *ret)
{
	uint8_t opcode;

	while (read_byte(program, &opcode) && run_opcode(program, opcode)) {
		if (opcode < program->opcode_base && opcode != DW_LNS_copy &&
		    !program->row.end_sequence)
			continue;
		*ret = program->row;
		if (program->row.end_sequence)
			begin_sequence(program);
		return true;
	}
	program->at = program->bytes.len;
	return false;
}
