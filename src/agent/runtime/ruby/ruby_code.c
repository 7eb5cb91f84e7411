/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: Ruby's vm_core.h, method.h, internal/imemo.h.
 */
#include "agent/runtime/ruby/ruby_code.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/ruby/ruby_lines.h"
#include "base/mem.h"
#include "base/slice.h"

/* What the flags of an object say that it is. */
#define OBJECT_KIND 0xf01fu
#define OBJECT_METHOD 0x601au
#define OBJECT_CODE 0x701au

#define OBJECT_WORDS 5
#define BODY_BYTES_MAX 512u
#define BODY_CODE_AT 8u
#define BODY_WORDS_AT 4u
#define BODY_PATH_AT 64u
#define BODY_NAME_AT 72u
#define BODY_LABEL_AT 80u
#define BODY_FIRST_LINE_AT 88u

/* A method's definition. */
#define DEFINITION_WORDS 5
#define DEFINITION_KIND 15u
#define DEFINITION_IN_RUBY 0u
#define DEFINITION_NAME_WORD 4 /* an id */

struct body {
	uint8_t bytes[BODY_BYTES_MAX];
};

static uint64_t word_at(const struct body *body, uint32_t at)
{
	uint64_t word = 0;

	if (at <= BODY_BYTES_MAX - sizeof(word))
		memcpy(&word, body->bytes + at, sizeof(word));
	return word;
}

/* ---- instructions ---- */

static bool read_body(const struct ruby_memory *ruby, uint64_t code, struct body *ret)
{
	uint64_t words[OBJECT_WORDS];

	if (!code || code & 7 || !memory_read(ruby->memory, code, words, sizeof(words)) ||
	    (words[0] & OBJECT_KIND) != OBJECT_CODE)
		return false;
	memset(ret, 0, sizeof(*ret));
	return ruby->layout->body_bytes <= sizeof(ret->bytes) &&
	       memory_read(ruby->memory, words[2], ret->bytes, ruby->layout->body_bytes);
}

static void read_lines(const struct ruby_memory *ruby, const struct body *body,
		       struct script_code *ret)
{
	const struct ruby_layout *layout = ruby->layout;
	struct ruby_line_source source = {
		.code = word_at(body, BODY_CODE_AT),
		.words = (uint32_t)word_at(body, BODY_WORDS_AT),
		.entries = word_at(body, layout->lines),
		.entries_count = (uint32_t)word_at(body, layout->lines_count),
		.entry_bytes = layout->line_bytes,
		.index = word_at(body, layout->lines_index),
	};

	ret->lines = ruby_lines_read(ruby->memory, &source, &ret->lines_len);
}

/* It is a number of Ruby's up to 3.1; in what form later versions keep it is not relied upon. */
static uint32_t first_line(const struct ruby_layout *layout, const struct body *body)
{
	uint64_t value = word_at(body, BODY_FIRST_LINE_AT);

	return layout->version <= RUBY_VERSION(3, 1) && value & 1 && value >> 1 <= INT32_MAX
		       ? (uint32_t)(value >> 1)
		       : 0;
}

/* Sets all but the function, which is only the label then. */
static enum script_code_result read_code(const struct ruby_memory *ruby, uint64_t code,
					 struct script_code *ret)
{
	struct body body;

	if (!read_body(ruby, code, &body))
		return SCRIPT_CODE_GONE;
	ret->function = ruby_string(ruby, word_at(&body, BODY_LABEL_AT));
	ret->name = ruby_string(ruby, word_at(&body, BODY_NAME_AT));
	ret->file = ruby_path(ruby, word_at(&body, BODY_PATH_AT));
	if (!ret->function || !ret->name || !ret->file) {
		script_code_fini(ret);
		return SCRIPT_CODE_GONE;
	}
	ret->first_line = first_line(ruby->layout, &body);
	read_lines(ruby, &body, ret);
	return SCRIPT_CODE_READ;
}

/* ---- methods ---- */

static void qualify(const struct ruby_memory *ruby, uint64_t class, struct script_code *code)
{
	char *prefix = ruby_class_prefix(ruby, class);
	struct strbuf text = { 0 };

	if (prefix)
		strbuf_add_text(&text, prefix);
	strbuf_add_text(&text, code->name);
	free(code->function);
	code->function = mem_strndup(text.len ? text.data : "", text.len);
	strbuf_free(&text);
	free(prefix);
}

static enum script_code_result read_method(const struct ruby_memory *ruby, const uint64_t *words,
					   struct script_code *ret)
{
	uint64_t definition[DEFINITION_WORDS];

	if (!memory_read(ruby->memory, words[2], definition, sizeof(definition)))
		return SCRIPT_CODE_GONE;
	if ((definition[0] & DEFINITION_KIND) == DEFINITION_IN_RUBY) {
		enum script_code_result result = read_code(ruby, definition[1], ret);

		if (result != SCRIPT_CODE_READ)
			return result;
	} else {
		ret->name = ruby_id_name(ruby, definition[DEFINITION_NAME_WORD]);
		if (!ret->name)
			return SCRIPT_CODE_GONE;
		ret->file = mem_strndup("", 0);
	}
	qualify(ruby, words[1], ret);
	return SCRIPT_CODE_READ;
}

enum script_code_result ruby_code_read(const struct memory_reader *memory,
				       const struct ruby_layout *layout, uint64_t bias,
				       uint64_t address, struct script_code *ret)
{
	struct ruby_memory ruby = { memory, layout, layout->symbols ? layout->symbols + bias : 0 };
	enum script_code_result result;
	uint64_t words[OBJECT_WORDS];
	bool is_method;

	*ret = (struct script_code){ 0 };
	if (!memory_read(memory, address, words, sizeof(words)))
		return SCRIPT_CODE_GONE;
	is_method = (words[0] & OBJECT_KIND) == OBJECT_METHOD;
	if (!is_method && (words[0] & OBJECT_KIND) != OBJECT_CODE)
		return SCRIPT_CODE_OTHER;
	result = is_method ? read_method(&ruby, words, ret) : read_code(&ruby, address, ret);
	ret->proof = script_ruby_proof((const __u64 *)(words + 1), is_method);
	return result;
}

void ruby_full_label(const struct script_code *code, const struct script_code *method,
		     struct strbuf *out)
{
	struct slice label = slice_of(code->function), name = slice_of(code->name);

	/* A method made from a block has the block's label. */
	if (!method || !*method->file || !slice_ends_with(label, name) ||
	    strcmp(method->name, code->name) != 0) {
		strbuf_add_text(out, code->function);
		return;
	}
	strbuf_add(out, label.data, label.len - name.len);
	strbuf_add_text(out, method->function);
}
