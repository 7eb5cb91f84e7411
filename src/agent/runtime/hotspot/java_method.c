/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: src/hotspot/share/oops/method.hpp, constMethod.hpp; lines: code/compressedStream.hpp. */
#include "agent/runtime/hotspot/java_method.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/hotspot/java_number.h"
#include "base/mem.h"
#include "base/strbuf.h"

#define CONST_METHOD_BYTES_MAX 256u
#define HAS_LINES 1u
#define LINES_BYTES_MAX (4u * JAVA_LINES_MAX)

struct source {
	const struct memory_reader *memory;
	const struct hotspot_layout *layout;
	uint64_t const_method;
	uint8_t head[CONST_METHOD_BYTES_MAX]; /* of the ConstMethod */
};

static bool word_at(const struct source *source, uint64_t address, uint64_t *ret)
{
	return address && !(address & 7) && memory_read(source->memory, address, ret, sizeof(*ret));
}

static uint32_t short_at(const uint8_t *bytes, size_t at)
{
	return bytes[at] | (uint32_t)bytes[at + 1] << 8;
}

static bool add_symbol(const struct source *source, uint64_t symbol, struct strbuf *out)
{
	uint8_t len_bytes[2];
	uint32_t len;

	if (!symbol || !memory_read(source->memory, symbol + source->layout->symbol_length,
				    len_bytes, sizeof(len_bytes)))
		return false;
	len = short_at(len_bytes, 0);
	if (len > JAVA_NAME_MAX)
		len = JAVA_NAME_MAX;
	if (!memory_read(source->memory, symbol + source->layout->symbol_text,
			 strbuf_reserve(out, len + 1), len))
		return false;
	out->len += len;
	out->data[out->len] = 0;
	return true;
}

static bool add_entry(const struct source *source, uint64_t pool, uint32_t index,
		      struct strbuf *out)
{
	uint32_t length;
	uint64_t symbol;

	return memory_read(source->memory, pool + source->layout->pool_length, &length,
			   sizeof(length)) &&
	       index && index < length &&
	       word_at(source, pool + source->layout->pool_bytes + 8ull * index, &symbol) &&
	       add_symbol(source, symbol, out);
}

/* Classes that are made at run time have an address or a number, which says nothing. */
static size_t stable_length(const char *class_name, size_t len)
{
	struct slice lambda = SLICE_LITERAL("$$Lambda");

	for (size_t i = 0; i + 1 < len; i++) {
		if (slice_starts_with(slice_from(class_name + i, len - i), lambda))
			return i + lambda.len;
		if (class_name[i + 1] == '0' && (class_name[i] == '+' || class_name[i] == '/') &&
		    i + 2 < len && class_name[i + 2] == 'x')
			return i;
	}
	return len;
}

static bool name_method(const struct source *source, uint64_t pool, struct java_method *ret)
{
	const struct hotspot_layout *layout = source->layout;
	struct strbuf name = { 0 }, file = { 0 };
	uint32_t source_index = 0;
	uint8_t index[2] = { 0 };
	uint64_t klass, symbol;
	size_t package = 0;
	bool is_named;

	is_named = word_at(source, pool + layout->pool_holder, &klass) &&
		   word_at(source, klass + layout->klass_name, &symbol) &&
		   add_symbol(source, symbol, &name);
	if (is_named) {
		name.len = stable_length(name.data, name.len);
		for (size_t i = 0; i < name.len; i++) {
			if (name.data[i] == '/') {
				name.data[i] = '.';
				package = i + 1;
			}
		}
		strbuf_add(&file, name.data, package);
		for (size_t i = 0; i < file.len; i++)
			if (file.data[i] == '.')
				file.data[i] = '/';
		strbuf_add_byte(&name, '.');
		is_named =
			add_entry(source, pool, short_at(source->head, layout->name_index), &name);
	}
	if (layout->pool_source &&
	    memory_read(source->memory, pool + layout->pool_source, index, sizeof(index)))
		source_index = short_at(index, 0);
	if (!is_named || !add_entry(source, pool, source_index, &file))
		strbuf_clear(&file);
	if (is_named) {
		ret->function = mem_strndup(name.data, name.len);
		ret->file = mem_strndup(file.len ? file.data : "", file.len);
	}
	strbuf_free(&name);
	strbuf_free(&file);
	return is_named;
}

/* Pairs of bytecode index and line, each told by what it is more than the last. */
static void decode_lines(struct java_numbers *numbers, struct java_method *ret)
{
	int64_t bci = 0, line = 0;
	size_t capacity = 0, count = 0;

	while (numbers->at < numbers->len && count < JAVA_LINES_MAX) {
		uint8_t byte = numbers->bytes[numbers->at++];
		int32_t more_bci = byte >> 3, more_lines = byte & 7;

		if (byte == 0)
			break;
		if (byte == 0xff && (!java_signed_number(numbers, &more_bci) ||
				     !java_signed_number(numbers, &more_lines)))
			break;
		bci += more_bci;
		line += more_lines;
		if (bci < 0 || bci > UINT16_MAX || line < 0 || line > UINT16_MAX)
			break;
		mem_grow(ret->lines, count, capacity);
		ret->lines[count++] = (struct java_line){ (uint16_t)bci, (uint16_t)line };
	}
	ret->lines_count = (uint32_t)count;
}

/* They follow the bytecodes. */
static void read_lines(const struct source *source, struct java_method *ret)
{
	const struct hotspot_layout *layout = source->layout;
	uint32_t begin = layout->bytecodes + short_at(source->head, layout->code_size), words;
	struct java_numbers numbers = { .from_one = layout->has_numbers_from_one };
	uint64_t end;
	uint8_t *bytes;

	memcpy(&words, source->head + layout->method_words, sizeof(words));
	end = 8ull * words;
	if (!(source->head[layout->method_flags] & HAS_LINES) || end <= begin)
		return;
	numbers.len = end - begin < LINES_BYTES_MAX ? end - begin : LINES_BYTES_MAX;
	bytes = mem_calloc(1, numbers.len);
	numbers.bytes = bytes;
	if (memory_read(source->memory, source->const_method + begin, bytes, numbers.len))
		decode_lines(&numbers, ret);
	free(bytes);
}

bool java_method_read(const struct memory_reader *memory, const struct hotspot_layout *layout,
		      uint64_t address, struct java_method *ret)
{
	struct source source = { .memory = memory, .layout = layout };
	uint64_t pool, ids;

	*ret = (struct java_method){ 0 };
	if (layout->bytecodes > CONST_METHOD_BYTES_MAX ||
	    layout->method_flags + 2u > layout->bytecodes ||
	    layout->code_size + 2u > layout->bytecodes ||
	    layout->name_index + 2u > layout->bytecodes ||
	    layout->method_words + 4u > layout->bytecodes ||
	    layout->proof + 8u > layout->bytecodes || layout->constants + 8u > layout->bytecodes ||
	    !word_at(&source, address + layout->const_method, &source.const_method) ||
	    !source.const_method || source.const_method & 7 ||
	    !memory_read(memory, source.const_method, source.head, layout->bytecodes))
		return false;
	memcpy(&pool, source.head + layout->constants, sizeof(pool));
	memcpy(&ids, source.head + layout->proof, sizeof(ids));
	if (!pool || pool & 7 || !name_method(&source, pool, ret))
		return false;
	ret->proof = jvm_method_proof(source.const_method, ids);
	read_lines(&source, ret);
	return true;
}

void java_method_fini(struct java_method *method)
{
	free(method->function);
	free(method->file);
	free(method->lines);
	*method = (struct java_method){ 0 };
}

size_t java_method_bytes(const struct java_method *method)
{
	return strlen(method->function) + strlen(method->file) +
	       method->lines_count * sizeof(*method->lines) + 64;
}

uint32_t java_method_line(const struct java_method *method, uint32_t bci)
{
	const struct java_line *best = NULL;

	for (uint32_t i = 0; i < method->lines_count; i++) {
		const struct java_line *line = &method->lines[i];

		if (line->bci <= bci && (!best || line->bci >= best->bci))
			best = line;
	}
	return best ? best->line : 0;
}

uint32_t java_method_first_line(const struct java_method *method)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < method->lines_count; i++)
		if (!first || method->lines[i].line < first)
			first = method->lines[i].line;
	return first;
}
