/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/dotnet/code_lines.h"

#include <stdlib.h>

#include "agent/runtime/dotnet/unwind_info.h"
#include "base/mem.h"

void code_lines_clear(struct code_lines *lines)
{
	lines->count = 0;
}

void code_lines_fini(struct code_lines *lines)
{
	free(lines->items);
	*lines = (struct code_lines){ 0 };
}

void code_lines_note(struct code_lines *lines, uint64_t number)
{
	if (lines->count && lines->items[lines->count - 1].number == number)
		return;
	mem_grow(lines->items, lines->count, lines->capacity);
	lines->items[lines->count++] = (struct dotnet_line){ .number = number };
}

static int by_number(const void *a, const void *b)
{
	const struct dotnet_line *first = a, *second = b;

	return (first->number > second->number) - (first->number < second->number);
}

static void sort(struct code_lines *lines)
{
	size_t count = 0;

	if (lines->count)
		qsort(lines->items, lines->count, sizeof(*lines->items), by_number);
	for (size_t i = 0; i < lines->count; i++)
		if (!count || lines->items[count - 1].number != lines->items[i].number)
			lines->items[count++] = lines->items[i];
	lines->count = count;
}

/* What is being put into a line. */
struct filling {
	struct code_line *line;
	uint64_t start;
	uint32_t words; /* behind the first */
	uint32_t rule;	/* of the last row */
};

/* From `address` on; what is before the line holds at its start. */
static void put(struct filling *filling, uint64_t address, uint32_t rule)
{
	uint32_t *rows = filling->line->rows;

	if (address <= filling->start) {
		rows[0] = TABLE_ROW(0, rule);
		filling->rule = rule;
		return;
	}
	if (rule == filling->rule || filling->words == TABLE_LINE_WORDS - 1)
		return;
	if (filling->words == TABLE_LINE_WORDS - 2)
		rule = 0; /* there may be more to come */
	rows[++filling->words] = TABLE_ROW(address - filling->start, rule);
	filling->rule = rule;
}

static void put_function(struct filling *filling, const struct dotnet_function *function)
{
	uint64_t end = filling->start + CODE_LINE_BYTES;

	if (!function->rows_count)
		put(filling, function->start, 0);
	for (uint32_t i = 0; i < function->rows_count; i++) {
		uint64_t address = function->start + function->rows[i].offset;

		if (address >= function->end || address >= end)
			break;
		put(filling, address, function->rows[i].rule);
	}
	if (function->end < end)
		put(filling, function->end, 0);
}

void code_lines_make(struct code_lines *lines, const struct dotnet_function *functions,
		     size_t count)
{
	size_t first = 0;

	sort(lines);
	for (size_t i = 0; i < lines->count; i++) {
		struct dotnet_line *line = &lines->items[i];
		uint64_t start = line->number << CODE_LINE_SHIFT;
		struct filling filling = { .line = &line->line, .start = start };

		line->is_gone = true;
		line->line.rows[0] = TABLE_ROW(0, 0);
		for (uint32_t k = 1; k < TABLE_LINE_WORDS; k++)
			line->line.rows[k] = TABLE_ROW_UNUSED;
		while (first < count && functions[first].end <= start)
			first++;
		for (size_t k = first; k < count && functions[k].start < start + CODE_LINE_BYTES;
		     k++) {
			put_function(&filling, &functions[k]);
			line->is_gone = false;
		}
	}
}
