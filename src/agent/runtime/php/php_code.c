/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: PHP's Zend/zend_compile.h, zend_types.h, zend.h.
 */
#include "agent/runtime/php/php_code.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/line_table.h"
#include "base/mem.h"
#include "codec/wire/utf8.h"

#define KIND_INTERNAL 1u
#define KIND_USER 2u
#define KIND_EVALUATED 4u

#define TEXT_AT (8 * SCRIPT_TEXT_HEAD_WORDS)
#define CLASS_NAME_AT 8u

#define INSTRUCTION_BYTES 32u
#define INSTRUCTION_LINE_AT 24u
#define INSTRUCTIONS_PER_READ 256u

#define MAIN "{main}"
#define EVALUATED "{eval}"
#define EVALUATED_END " : eval()'d code"

struct function {
	uint8_t kind;
	uint64_t name, class;
	uint64_t file, lines;
	uint64_t opcodes;
	uint32_t instructions;
};

static bool read_word(const struct memory_reader *memory, uint64_t address, uint64_t *ret)
{
	return memory_read(memory, address, ret, sizeof(*ret));
}

/* Text of PHP, up to the NUL that is in the names of classes without one. NULL = there is none. */
static char *read_text(const struct memory_reader *memory, uint64_t address)
{
	__u64 head[SCRIPT_TEXT_HEAD_WORDS];
	char bytes[PHP_TEXT_MAX];
	size_t len;

	if (!address || address & 7 || !memory_read(memory, address, head, sizeof(head)))
		return NULL;
	len = head[SCRIPT_TEXT_LENGTH_WORD] < sizeof(bytes) ? (size_t)head[SCRIPT_TEXT_LENGTH_WORD]
							    : sizeof(bytes);
	if (len && !memory_read(memory, address + TEXT_AT, bytes, len))
		return NULL;
	return utf8_copy_repaired(slice_from(bytes, strnlen(bytes, len)));
}

static enum script_code_result read_function(const struct memory_reader *memory,
					     const struct php_layout *layout, uint64_t address,
					     struct function *ret)
{
	uint64_t head[3], file[2] = { 0 };

	*ret = (struct function){ 0 };
	if (!memory_read(memory, address, head, sizeof(head)))
		return SCRIPT_CODE_GONE;
	ret->kind = (uint8_t)head[0];
	if (ret->kind != KIND_INTERNAL && ret->kind != KIND_USER && ret->kind != KIND_EVALUATED)
		return SCRIPT_CODE_OTHER;
	if (ret->kind != KIND_INTERNAL &&
	    (!memory_read(memory, address + layout->file, file, sizeof(file)) ||
	     !memory_read(memory, address + layout->last, &ret->instructions,
			  sizeof(ret->instructions)) ||
	     !read_word(memory, address + layout->opcodes, &ret->opcodes)))
		return SCRIPT_CODE_GONE;
	ret->name = head[1];
	ret->class = head[2];
	ret->file = file[0];
	ret->lines = file[1];
	return SCRIPT_CODE_READ;
}

/* ---- names ---- */

/* With its class. From 8.4 on a closure's name says where it was made, its class included. */
static char *qualify(const struct memory_reader *memory, const struct function *function,
		     const char *name)
{
	struct strbuf text = { 0 };
	uint64_t class_name;
	char *class = NULL, *copy;

	if (function->class && strncmp(name, "{closure:", strlen("{closure:")) != 0 &&
	    read_word(memory, function->class + CLASS_NAME_AT, &class_name))
		class = read_text(memory, class_name);
	if (class)
		strbuf_addf(&text, "%s::", class);
	strbuf_add_text(&text, name);
	copy = mem_strndup(text.data, text.len);
	strbuf_free(&text);
	free(class);
	return copy;
}

static char *name_of_file_code(const char *file)
{
	bool is_evaluated = slice_ends_with(slice_of(file), slice_of(EVALUATED_END));

	return is_evaluated ? mem_strndup(EVALUATED, strlen(EVALUATED))
			    : mem_strndup(MAIN, strlen(MAIN));
}

static bool read_names(const struct memory_reader *memory, const struct function *function,
		       struct script_code *ret)
{
	bool is_internal = function->kind == KIND_INTERNAL;

	ret->file = is_internal ? mem_strndup("", 0) : read_text(memory, function->file);
	if (!ret->file)
		return false;
	ret->name = read_text(memory, function->name);
	if (ret->name)
		ret->function = qualify(memory, function, ret->name);
	return ret->name;
}

/* ---- lines ---- */

static bool fill(const struct memory_reader *memory, uint64_t opcodes, uint32_t count,
		 struct line_table *table)
{
	uint8_t block[INSTRUCTIONS_PER_READ * INSTRUCTION_BYTES];

	for (uint32_t first = 0; first < count; first += INSTRUCTIONS_PER_READ) {
		uint32_t left = count - first;
		uint32_t here = left < INSTRUCTIONS_PER_READ ? left : INSTRUCTIONS_PER_READ;

		if (!memory_read(memory, opcodes + (uint64_t)first * INSTRUCTION_BYTES, block,
				 (size_t)here * INSTRUCTION_BYTES))
			return false;
		for (uint32_t i = 0; i < here; i++) {
			uint32_t line;

			memcpy(&line, block + i * INSTRUCTION_BYTES + INSTRUCTION_LINE_AT,
			       sizeof(line));
			line_table_add(table, first + i, line);
		}
	}
	return true;
}

static void read_lines(const struct memory_reader *memory, const struct function *function,
		       struct script_code *ret)
{
	struct line_table table;

	if (!function->instructions || function->instructions > PHP_INSTRUCTIONS_MAX)
		return;
	line_table_begin(&table, 0, function->instructions);
	if (fill(memory, function->opcodes, function->instructions, &table))
		ret->lines = line_table_take(&table, &ret->lines_len);
	else
		line_table_free(&table);
}

uint32_t php_line(struct slice lines, uint8_t form, uint32_t position)
{
	struct line_table_head head;

	if (form == PHP_LINES_NONE)
		return position <= INT32_MAX ? position : 0;
	if (!line_table_head(lines, &head) || position % INSTRUCTION_BYTES ||
	    position / INSTRUCTION_BYTES >= head.instructions)
		return 0;
	return line_table_line(lines, position / INSTRUCTION_BYTES);
}

/* ---- the proof ---- */

/* As script_php_read_text has it. 0 = there is none. */
static uint64_t prove_text(const struct memory_reader *memory, uint64_t address)
{
	__u64 words[SCRIPT_TEXT_HEAD_WORDS + SCRIPT_TEXT_WORDS] = { 0 };

	if (!address || !memory_read(memory, address, words, TEXT_AT) ||
	    !memory_read(memory, address, words, script_text_bytes(words)))
		return 0;
	return script_text_proof(words, address);
}

static uint32_t prove(const struct memory_reader *memory, const struct function *function)
{
	uint64_t class_name = 0;

	if (function->kind == KIND_INTERNAL)
		return script_php_proof(function->name, function->class, 0, 0, 0) >> 32;
	if (function->class)
		read_word(memory, function->class + CLASS_NAME_AT, &class_name);
	return script_php_proof(prove_text(memory, function->name), prove_text(memory, class_name),
				prove_text(memory, function->file), function->lines,
				function->instructions) >>
	       32;
}

/* ---- all of it ---- */

/* The code of the file whose name is at the address. */
static enum script_code_result read_file_code(const struct memory_reader *memory, uint64_t address,
					      struct script_code *ret)
{
	ret->file = read_text(memory, address);
	if (!ret->file)
		return SCRIPT_CODE_GONE;
	ret->name = name_of_file_code(ret->file);
	ret->function = name_of_file_code(ret->file);
	ret->first_line = 1;
	ret->lines_form = PHP_LINES_NONE;
	ret->proof = script_php_file_proof(prove_text(memory, address)) >> 32;
	return SCRIPT_CODE_READ;
}

enum script_code_result php_code_read(const struct memory_reader *memory,
				      const struct php_layout *layout, uint64_t key,
				      uint64_t address, struct script_code *ret)
{
	enum script_code_result result;
	struct function function;

	*ret = (struct script_code){ 0 };
	if (key & SCRIPT_PHP_IS_FILE)
		return read_file_code(memory, address, ret);
	result = read_function(memory, layout, address, &function);
	if (result != SCRIPT_CODE_READ)
		return result;
	if (!read_names(memory, &function, ret)) {
		script_code_fini(ret);
		return SCRIPT_CODE_GONE;
	}
	if (function.kind != KIND_INTERNAL) {
		ret->first_line = (uint32_t)function.lines;
		read_lines(memory, &function, ret);
	}
	ret->proof = prove(memory, &function);
	return SCRIPT_CODE_READ;
}

void php_label(const struct script_code *code, bool is_outermost, struct strbuf *out)
{
	const char *base = strrchr(code->file, '/');

	if (is_outermost || strcmp(code->function, MAIN) != 0)
		strbuf_add_text(out, code->function);
	else
		strbuf_addf(out, "{include %s}", base ? base + 1 : code->file);
}
