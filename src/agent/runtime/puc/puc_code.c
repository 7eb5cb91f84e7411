/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: Lua's lobject.h. From 5.4 on there is a byte for each instruction, how much its line is
 * behind that of the one before; those that a byte cannot say are in a table of their own.
 */
#include "agent/runtime/puc/puc_code.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/line_table.h"
#include "agent/runtime/lua/lua_code.h"
#include "agent/runtime/lua/lua_source.h"
#include "agent/runtime/puc/puc_calls.h"
#include "agent/runtime/puc/puc_text.h"
#include "base/mem.h"

#define HEAD_BYTES 128u
#define INSTRUCTION_BYTES 4u
#define IN_TABLE (-128) /* a line that a byte cannot say */

struct head {
	uint8_t bytes[HEAD_BYTES];
};

struct base {
	uint32_t instruction, line;
};

static uint64_t word_at(const struct head *head, uint8_t at)
{
	uint64_t word = 0;

	if (at <= HEAD_BYTES - sizeof(word))
		memcpy(&word, head->bytes + at, sizeof(word));
	return word;
}

static uint32_t number_at(const struct head *head, uint8_t at)
{
	return (uint32_t)word_at(head, at);
}

/* ---- lines ---- */

static bool fill_whole(const struct memory_reader *memory, uint64_t lines, uint32_t count,
		       struct line_table *table)
{
	uint32_t *numbers = mem_new_array(uint32_t, count);
	bool is_read = memory_read(memory, lines, numbers, count * sizeof(*numbers));

	for (uint32_t i = 0; is_read && i < count; i++)
		line_table_add(table, i, numbers[i]);
	free(numbers);
	return is_read;
}

static void add_steps(const int8_t *steps, uint32_t count, const struct base *bases,
		      uint32_t bases_count, uint32_t line, struct line_table *table)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < count; i++) {
		while (next < bases_count && bases[next].instruction < i)
			next++;
		if (steps[i] != IN_TABLE)
			line += (uint32_t)(int32_t)steps[i];
		else if (next < bases_count && bases[next].instruction == i)
			line = bases[next].line;
		else
			line = 0;
		line_table_add(table, i, line);
	}
}

static bool fill_by_steps(const struct memory_reader *memory, const struct head *head,
			  const struct puc_layout *layout, uint32_t count, struct line_table *table)
{
	uint32_t bases_count = number_at(head, layout->bases_count);
	int8_t *steps = mem_new_array(int8_t, count);
	struct base *bases = NULL;
	bool is_read = bases_count <= count &&
		       memory_read(memory, word_at(head, layout->lines), steps, count);

	if (is_read && bases_count) {
		bases = mem_new_array(struct base, bases_count);
		is_read = memory_read(memory, word_at(head, layout->bases), bases,
				      bases_count * sizeof(*bases));
	}
	if (is_read)
		add_steps(steps, count, bases, bases_count, number_at(head, layout->first_line),
			  table);
	free(bases);
	free(steps);
	return is_read;
}

/* Code without information for debuggers has none. */
static void read_lines(const struct memory_reader *memory, const struct head *head,
		       const struct puc_layout *layout, struct script_code *ret)
{
	uint32_t count = number_at(head, layout->code_count);
	struct line_table table;
	bool is_read;

	if (!count || count > PUC_INSTRUCTIONS_MAX || number_at(head, layout->lines_count) != count)
		return;
	line_table_begin(&table, word_at(head, layout->code), count);
	is_read = layout->bases ? fill_by_steps(memory, head, layout, count, &table)
				: fill_whole(memory, word_at(head, layout->lines), count, &table);
	if (is_read)
		ret->lines = line_table_take(&table, &ret->lines_len);
	else
		line_table_free(&table);
}

uint32_t puc_line(struct slice lines, uint32_t position)
{
	return line_table_line_before(lines, position, INSTRUCTION_BYTES);
}

/* ---- names of what it calls ---- */

static struct lua_code *read_calls(const struct memory_reader *memory, const struct head *head,
				   const struct puc_layout *layout)
{
	const struct puc_names_source source = {
		.code = word_at(head, layout->code),
		.constants = word_at(head, layout->constants),
		.locals = word_at(head, layout->locals),
		.captured = word_at(head, layout->captured),
		.code_count = number_at(head, layout->code_count),
		.constants_count = number_at(head, layout->constants_count),
		.locals_count = number_at(head, layout->locals_count),
		.captured_count = number_at(head, layout->captured_count),
	};
	struct lua_code *code = mem_new(struct lua_code);

	code->prototypes = mem_new(struct lua_prototype);
	code->prototypes_count = 1;
	code->prototypes[0].code = source.code;
	if (source.code_count <= PUC_INSTRUCTIONS_MAX)
		puc_calls_read(memory, (enum puc_instructions)layout->instructions, &source,
			       code->prototypes);
	return code;
}

const char *puc_callee(const struct script_code *code, uint32_t position)
{
	uint32_t into = position - (uint32_t)code->lua->prototypes[0].code;

	return into % INSTRUCTION_BYTES || !into
		       ? NULL
		       : lua_prototype_callee(code->lua->prototypes, into / INSTRUCTION_BYTES - 1);
}

/* ---- the whole ---- */

enum script_code_result puc_code_read(const struct memory_reader *memory,
				      const struct puc_layout *layout, uint64_t address,
				      struct script_code *ret)
{
	__u64 proof[SCRIPT_PROOF_WORDS];
	struct head head;
	char *text;

	*ret = (struct script_code){ 0 };
	if (!memory_read(memory, address, head.bytes, sizeof(head.bytes)))
		return SCRIPT_CODE_GONE;
	text = puc_text_read(memory, word_at(&head, layout->source));
	if (!text)
		return SCRIPT_CODE_GONE;
	for (uint8_t i = 0; i < SCRIPT_PROOF_WORDS; i++)
		proof[i] = word_at(&head, (uint8_t)(layout->proof + 8 * i));
	ret->proof = script_proof(proof);
	ret->first_line = number_at(&head, layout->first_line);
	ret->file = lua_source_file(text);
	ret->function = lua_source_place(ret->file, ret->first_line);
	ret->name = mem_strndup(ret->function, strlen(ret->function));
	read_lines(memory, &head, layout, ret);
	ret->lua = read_calls(memory, &head, layout);
	free(text);
	return SCRIPT_CODE_READ;
}
