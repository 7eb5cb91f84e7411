/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: CPython's Include/cpython/code.h, unicodeobject.h, bytesobject.h.
 */
#include "agent/runtime/python/python_code.h"

#include <string.h>

#include "agent/bpf/script_proof.h"
#include "base/mem.h"
#include "base/slice.h"
#include "codec/wire/utf8.h"

#define CODE_BYTES_MAX 256u
#define TEXT_HEADER_BYTES 72u

static uint64_t word_at(const uint8_t *bytes, uint16_t at)
{
	uint64_t word = 0;

	if (at <= CODE_BYTES_MAX - sizeof(word))
		memcpy(&word, bytes + at, sizeof(word));
	return word;
}

/* ---- text ---- */

struct text_state {
	unsigned kind; /* bytes of a character */
	bool is_ascii;
};

/* The bits in front of these grew from 2 to 8, without a global lock, and to 16. */
static bool parse_text_state(uint32_t word, struct text_state *ret)
{
	static const unsigned shifts[] = { 2, 8, 16 };

	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		uint32_t state = word >> shifts[i];
		bool is_compact = state >> 3 & 1;

		ret->kind = state & 7;
		ret->is_ascii = state >> 4 & 1;
		if (is_compact &&
		    (ret->kind == 1 || (!ret->is_ascii && (ret->kind == 2 || ret->kind == 4))))
			return true;
	}
	return false;
}

static void add_text(struct strbuf *out, const uint8_t *data, size_t count, unsigned kind)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t character = 0;

		memcpy(&character, data + i * kind, kind);
		utf8_add_character(out, character);
	}
}

/* The caller frees what is returned; NULL = it is no text, or has gone. */
static char *read_text(const struct memory_reader *memory, const struct python_layout *layout,
		       uint64_t address)
{
	uint8_t header[TEXT_HEADER_BYTES] = { 0 }, data[PYTHON_TEXT_MAX * 4];
	struct strbuf text = { 0 };
	struct text_state state;
	char *copy;
	uint64_t count;
	uint32_t bits;

	if (layout->text_state > sizeof(header) - sizeof(bits) ||
	    layout->text_count > sizeof(header) - sizeof(count) ||
	    !memory_read(memory, address, header, layout->text_state + sizeof(bits)))
		return NULL;
	memcpy(&bits, header + layout->text_state, sizeof(bits));
	memcpy(&count, header + layout->text_count, sizeof(count));
	if (!parse_text_state(bits, &state))
		return NULL;
	if (count > PYTHON_TEXT_MAX)
		count = PYTHON_TEXT_MAX;
	address += state.is_ascii ? layout->text_ascii : layout->text_wide;
	if (count && !memory_read(memory, address, data, count * state.kind))
		return NULL;
	add_text(&text, data, count, state.kind);
	copy = mem_strndup(text.data, text.len);
	strbuf_free(&text);
	return copy;
}

/* ---- modules ---- */

static bool drop_suffix(struct slice *text, const char *suffix)
{
	if (!slice_ends_with(*text, slice_of(suffix)))
		return false;
	text->len -= strlen(suffix);
	return true;
}

/* What follows the last folder of this name, which ends with "/"; or the text as it is. */
static struct slice behind(struct slice text, const char *folder)
{
	size_t len = strlen(folder);

	for (size_t i = text.len; i-- > 0;)
		if (text.len - i >= len && !memcmp(text.data + i, folder, len))
			return slice_from(text.data + i + len, text.len - i - len);
	return text;
}

/* A folder "python3.11/" of the standard library. */
static struct slice behind_library(struct slice text)
{
	struct slice rest = behind(text, "/lib/python");
	size_t i = 0;

	if (rest.len == text.len)
		return text;
	while (i < rest.len && rest.data[i] != '/')
		i++;
	return i < rest.len ? slice_from(rest.data + i + 1, rest.len - i - 1) : text;
}

static struct slice last_part(struct slice text)
{
	for (size_t i = text.len; i-- > 0;)
		if (text.data[i] == '/')
			return slice_from(text.data + i + 1, text.len - i - 1);
	return text;
}

/* Where modules are by their paths it is the whole of it, elsewhere the file's name alone. */
static struct slice path_in_library(struct slice path)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
	struct slice rest = path;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (rest.len == path.len)
			rest = behind(path, folders[i]);
	if (rest.len == path.len)
		rest = behind_library(path);
	return rest;
}

void python_module_name(const char *file, struct strbuf *out)
{
	struct slice path = slice_of(file), rest;

	if (slice_starts_with(path, slice_of("<frozen ")) && drop_suffix(&path, ">")) {
		strbuf_add(out, path.data + strlen("<frozen "), path.len - strlen("<frozen "));
		return;
	}
	if (slice_starts_with(path, slice_of("<")))
		return;
	drop_suffix(&path, ".py");
	rest = path_in_library(path);
	if (!drop_suffix(&rest, "/__init__") && rest.len == path.len)
		rest = last_part(rest);
	else if (rest.len + strlen("/__init__") == path.len)
		rest = last_part(rest);
	for (size_t i = 0; i < rest.len; i++)
		strbuf_add_byte(out, rest.data[i] == '/' ? '.' : rest.data[i]);
}

/* ---- code objects ---- */

static void read_lines(const struct memory_reader *memory, const struct python_layout *layout,
		       uint64_t address, struct script_code *ret)
{
	uint64_t count;

	ret->lines_form = (uint8_t)layout->lines_form;
	if (!memory_read(memory, address + layout->bytes_count, &count, sizeof(count)) || !count ||
	    count > PYTHON_LINES_MAX)
		return;
	ret->lines = mem_new_array(uint8_t, count);
	ret->lines_len = count;
	if (memory_read(memory, address + layout->bytes_data, ret->lines, count))
		return;
	free(ret->lines);
	ret->lines = NULL;
	ret->lines_len = 0;
}

static void name_function(struct script_code *code)
{
	struct strbuf text = { 0 };

	python_module_name(code->file, &text);
	if (text.len)
		strbuf_add_byte(&text, '.');
	strbuf_add_text(&text, code->name);
	code->function = mem_strndup(text.data, text.len);
	strbuf_free(&text);
}

static uint32_t prove(const uint8_t *code, uint16_t at, uint32_t words)
{
	__u64 proof[SCRIPT_PROOF_WORDS];

	for (uint16_t i = 0; i < SCRIPT_PROOF_WORDS; i++)
		proof[i] = i < words ? word_at(code, (uint16_t)(at + 8 * i)) : 0;
	return script_proof(proof);
}

enum script_code_result python_code_read(const struct memory_reader *memory,
					 const struct python_layout *layout, uint64_t bias,
					 uint32_t proof_words, uint64_t address,
					 struct script_code *ret)
{
	uint8_t code[CODE_BYTES_MAX] = { 0 };
	uint16_t name =
		layout->qualified_name == PYTHON_NO_FIELD ? layout->name : layout->qualified_name;

	*ret = (struct script_code){ 0 };
	/* Offsets may be what the binary says. */
	if (layout->lines > CODE_BYTES_MAX - sizeof(uint64_t))
		return SCRIPT_CODE_OTHER;
	if (!memory_read(memory, address, code, layout->lines + sizeof(uint64_t)))
		return SCRIPT_CODE_GONE;
	if (word_at(code, layout->type) != layout->code_type + bias)
		return SCRIPT_CODE_OTHER;
	ret->first_line = (uint32_t)word_at(code, layout->first_line);
	ret->proof = prove(code, layout->file_name, proof_words);
	ret->name = read_text(memory, layout, word_at(code, name));
	ret->file = read_text(memory, layout, word_at(code, layout->file_name));
	if (!ret->name || !ret->file) {
		script_code_fini(ret);
		return SCRIPT_CODE_GONE;
	}
	read_lines(memory, layout, word_at(code, layout->lines), ret);
	name_function(ret);
	return SCRIPT_CODE_READ;
}
