/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/line_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define HEAD_NUMBERS 2

void line_table_begin(struct line_table *table, uint64_t code, uint32_t instructions)
{
	*table = (struct line_table){
		.numbers = mem_new_array(uint32_t, HEAD_NUMBERS + 2 * LINE_TABLE_LINES_MAX),
		.last_line = UINT32_MAX,
	};
	table->numbers[table->count++] = (uint32_t)code;
	table->numbers[table->count++] = instructions;
}

void line_table_free(struct line_table *table)
{
	free(table->numbers);
	table->numbers = NULL;
}

void line_table_add(struct line_table *table, uint32_t instruction, uint32_t line)
{
	if (line > INT32_MAX)
		line = 0;
	if (line == table->last_line || table->count + 2 > HEAD_NUMBERS + 2 * LINE_TABLE_LINES_MAX)
		return;
	table->numbers[table->count++] = instruction;
	table->numbers[table->count++] = line;
	table->last_line = line;
}

uint8_t *line_table_take(struct line_table *table, size_t *ret_len)
{
	*ret_len = table->count * sizeof(uint32_t);
	return mem_realloc(table->numbers, table->count, sizeof(uint32_t));
}

static uint32_t number_at(struct slice table, size_t index)
{
	uint32_t number;

	memcpy(&number, table.data + index * sizeof(number), sizeof(number));
	return number;
}

bool line_table_head(struct slice table, struct line_table_head *ret)
{
	if (table.len < HEAD_NUMBERS * sizeof(uint32_t))
		return false;
	*ret = (struct line_table_head){ number_at(table, 0), number_at(table, 1) };
	return true;
}

uint32_t line_table_line(struct slice table, uint32_t instruction)
{
	size_t count = table.len / sizeof(uint32_t);
	uint32_t line = 0;

	for (size_t i = HEAD_NUMBERS; i + 1 < count && number_at(table, i) <= instruction; i += 2)
		line = number_at(table, i + 1);
	return line;
}

uint32_t line_table_line_before(struct slice table, uint32_t position, uint32_t instruction_bytes)
{
	struct line_table_head head;
	uint32_t into, instruction;

	if (!line_table_head(table, &head))
		return 0;
	into = position - head.code;
	instruction = into / instruction_bytes;
	if (into % instruction_bytes || instruction > head.instructions)
		return 0;
	return line_table_line(table, instruction - (instruction > 0));
}
