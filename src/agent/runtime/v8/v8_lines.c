/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/v8/v8_lines.h"

#include <stdlib.h>

#include "agent/runtime/v8/v8_text.h"
#include "base/hash.h"
#include "base/mem.h"

#define PIECE_CHARACTERS 16384u
#define PRINT_BYTES 512u
#define FIRST_LINE_MAX 0x3fffffffu

struct counting {
	struct v8_script_lines *to;
	size_t capacity;
	bool after_return; /* the last character was one, and ended a line */
};

void v8_lines_fini(struct v8_lines *lines)
{
	for (size_t i = 0; i < V8_LINES_SCRIPTS; i++)
		free(lines->scripts[i].ends);
	*lines = (struct v8_lines){ 0 };
}

/* As JavaScript has it: of a carriage return and a line feed the latter ends the line. */
static bool count_character(struct counting *counting, uint32_t place, uint16_t character)
{
	struct v8_script_lines *to = counting->to;
	bool is_pair = counting->after_return && character == '\n';

	counting->after_return = character == '\r';
	if (is_pair) {
		to->ends[to->count - 1] = place;
		return true;
	}
	if (character != '\n' && character != '\r' && character != 0x2028 && character != 0x2029)
		return true;
	if (to->count == V8_LINES_MAX)
		return false;
	mem_grow(to->ends, to->count, counting->capacity);
	to->ends[to->count++] = place;
	return true;
}

static bool count_piece(struct counting *counting, const struct v8_flat *text, uint32_t first,
			const uint8_t *bytes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint16_t character = bytes[i];

		if (!text->is_narrow)
			character = (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
		if (!count_character(counting, first + i, character))
			return false;
	}
	return true;
}

/* Nothing is kept of what cannot be read whole; of too many lines, that they are. */
static void read_lines(const struct memory_reader *memory, const struct v8_flat *text,
		       struct v8_script_lines *ret)
{
	uint8_t bytes[2 * PIECE_CHARACTERS];
	struct counting counting = { .to = ret };
	uint32_t width = text->is_narrow ? 1 : 2;

	for (uint32_t at = 0; at < text->count; at += PIECE_CHARACTERS) {
		uint32_t left = text->count - at;
		uint32_t count = left < PIECE_CHARACTERS ? left : PIECE_CHARACTERS;

		if (!memory_read(memory, text->at + (uint64_t)at * width, bytes,
				 (size_t)count * width)) {
			ret->source = 0;
			return;
		}
		if (!count_piece(&counting, text, at, bytes, count)) {
			ret->has_too_many = true;
			free(ret->ends);
			ret->ends = NULL;
			return;
		}
	}
}

/* What tells the source from another one that was at its place before. */
static bool print_of(const struct memory_reader *memory, const struct v8_flat *text, uint64_t *ret)
{
	uint8_t bytes[2 * PRINT_BYTES];
	uint64_t all = (uint64_t)text->count * (text->is_narrow ? 1 : 2);
	size_t some = all < PRINT_BYTES ? (size_t)all : PRINT_BYTES;

	if (!memory_read(memory, text->at, bytes, some) ||
	    !memory_read(memory, text->at + all - some, bytes + some, some))
		return false;
	*ret = hash_mix(hash_bytes(bytes, 2 * some), all);
	return true;
}

static struct v8_script_lines *lines_of(struct v8_lines *lines, uint64_t process,
					const struct memory_reader *memory,
					const struct v8_layout *layout, uint64_t source)
{
	struct v8_script_lines *script;
	struct v8_flat text;
	uint64_t print;

	if (!v8_text_find(memory, layout, source, &text) || text.count > V8_LINES_SOURCE_MAX ||
	    !print_of(memory, &text, &print))
		return NULL;
	for (size_t i = 0; i < V8_LINES_SCRIPTS; i++) {
		script = &lines->scripts[i];
		if (script->source == source && script->process == process &&
		    script->print == print)
			return script;
	}
	script = &lines->scripts[lines->next++ % V8_LINES_SCRIPTS];
	free(script->ends);
	*script = (struct v8_script_lines){ .process = process, .source = source, .print = print };
	read_lines(memory, &text, script);
	return script->source ? script : NULL;
}

uint32_t v8_lines_find(struct v8_lines *lines, uint64_t process, const struct memory_reader *memory,
		       const struct v8_layout *layout, uint64_t source, uint32_t position)
{
	const struct v8_script_lines *script = lines_of(lines, process, memory, layout, source);
	uint32_t low = 0, high;

	if (!script || script->has_too_many)
		return 0;
	for (high = script->count; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		if (script->ends[middle] < position)
			low = middle + 1;
		else
			high = middle;
	}
	return low + 1;
}

uint32_t v8_lines_of_script(struct v8_lines *lines, uint64_t process,
			    const struct memory_reader *memory, const struct v8_layout *layout,
			    uint64_t script, uint32_t position)
{
	uint64_t source, first;
	uint32_t line;

	if (!v8_word_read(memory, layout, script - 1 + layout->script_source, &source) ||
	    !v8_word_read(memory, layout, script - 1 + layout->script_line, &first))
		return 0;
	line = v8_lines_find(lines, process, memory, layout, source, position);
	if (line && (uint32_t)first == 0 && first >> 32 <= FIRST_LINE_MAX)
		line += (uint32_t)(first >> 32);
	return line;
}
