/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms: CPython's Objects/lnotab_notes.txt (3.6, 3.10) and Objects/locations.md (3.11).
 */
#include "agent/runtime/python/python_lines.h"

#include <stdbool.h>

#define INSTRUCTION_BYTES 2
#define NO_LINE (-128) /* in a range of 3.10 */

/* Kinds of entries of 3.11's table: 0 to 9 are short, and on the line of the one before. */
enum location_kind {
	LOCATION_SHORT_LAST = 9,
	LOCATION_ONE_LINE = 10, /* to 12: that many lines further */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

static uint32_t checked(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static uint32_t line_of_lnotab(struct slice table, int64_t line, int32_t position)
{
	int64_t at = 0;

	for (size_t i = 0; i + 1 < table.len; i += 2) {
		at += (uint8_t)table.data[i];
		if (at > position)
			break;
		line += (int8_t)table.data[i + 1];
	}
	return checked(line);
}

static uint32_t line_of_ranges(struct slice table, int64_t line, int32_t position)
{
	int64_t at = 0, wanted = (int64_t)position * INSTRUCTION_BYTES;

	for (size_t i = 0; i + 1 < table.len; i += 2) {
		int8_t step = (int8_t)table.data[i + 1];

		at += (uint8_t)table.data[i];
		if (step != NO_LINE)
			line += step;
		if (at > wanted)
			return step == NO_LINE ? 0 : checked(line);
	}
	return 0;
}

/* A number in groups of six bits, the lowest first. False when the bytes end. */
static bool take_number(struct slice *rest, uint32_t *ret)
{
	unsigned shift = 0;

	for (*ret = 0; rest->len; shift += 6) {
		uint8_t byte = (uint8_t)*rest->data;

		*rest = slice_from(rest->data + 1, rest->len - 1);
		if (shift < 32)
			*ret |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			return true;
	}
	return false;
}

static int64_t signed_number(uint32_t number)
{
	return number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
}

/* How many lines further this entry is. */
static int64_t line_step(struct slice body, unsigned kind)
{
	uint32_t number;

	if (kind > LOCATION_SHORT_LAST && kind < LOCATION_NO_COLUMNS)
		return kind - LOCATION_ONE_LINE;
	if ((kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG) && take_number(&body, &number))
		return signed_number(number);
	return 0;
}

/* The first byte of an entry is the only one with its highest bit set. */
static uint32_t line_of_locations(struct slice table, int64_t line, int32_t position)
{
	int64_t at = 0;

	for (size_t i = 0; i < table.len;) {
		uint8_t first = (uint8_t)table.data[i++];
		unsigned kind = first >> 3 & 15;
		size_t start = i;

		while (i < table.len && !((uint8_t)table.data[i] & 128))
			i++;
		line += line_step(slice_from(table.data + start, i - start), kind);
		at += ((first & 7) + 1) * INSTRUCTION_BYTES;
		if (at > position)
			return kind == LOCATION_NONE ? 0 : checked(line);
	}
	return 0;
}

uint32_t python_line(struct slice table, enum python_lines_form form, uint32_t first_line,
		     int32_t position)
{
	if (position < 0)
		return checked(first_line);
	switch (form) {
	case PYTHON_LINES_LNOTAB:
		return line_of_lnotab(table, first_line, position);
	case PYTHON_LINES_RANGES:
		return line_of_ranges(table, first_line, position);
	default:
		return line_of_locations(table, first_line, position);
	}
}
