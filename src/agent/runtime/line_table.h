/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_table - the line of each instruction of a function, as bytes in a struct script_code: where
 * the instructions begin (the low half of the address), their number, and an entry (instruction,
 * line) wherever the line changes.
 *
 * The numbers come from the process, so any may occur: a line over INT32_MAX becomes 0 (not known),
 * and entries over LINE_TABLE_LINES_MAX are left out.
 */
#ifndef FIRN_AGENT_RUNTIME_LINE_TABLE_H
#define FIRN_AGENT_RUNTIME_LINE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define LINE_TABLE_LINES_MAX 8192u

/* One that is being made: begun, and taken or freed. */
struct line_table {
	uint32_t *numbers;
	size_t count;
	uint32_t last_line;
};

void line_table_begin(struct line_table *table, uint64_t code, uint32_t instructions);
void line_table_free(struct line_table *table);
/* In rising order of instructions. */
void line_table_add(struct line_table *table, uint32_t instruction, uint32_t line);
/* The bytes, the caller's. */
uint8_t *line_table_take(struct line_table *table, size_t *ret_len);

struct line_table_head {
	uint32_t code, instructions;
};

/* False: it is no table. */
bool line_table_head(struct slice table, struct line_table_head *ret);
/* 0 = not known. Of a table that has a head. */
uint32_t line_table_line(struct slice table, uint32_t instruction);
/*
 * The line of the instruction before `position`, the low half of an address; at the beginning that
 * of the first. 0 = the position is not in these instructions, or the line is not known.
 */
uint32_t line_table_line_before(struct slice table, uint32_t position, uint32_t instruction_bytes);

#endif
