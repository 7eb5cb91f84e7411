/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: Perl's sv.h, cv.h, gv.h, hv.h, cop.h.
 */
#include "agent/runtime/perl/perl_code.h"

#include <string.h>

#include "agent/bpf/script_proof.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/wire/utf8.h"

/* The body and kind of any value, and the further word that some kinds have. */
struct value {
	uint64_t body;
	uint32_t references, flags;
	uint64_t word;
};

#define VALUE_KIND(value) ((value)->flags & 0xffu)
#define KIND_GLOB 9u
#define KIND_SUB 13u
#define KIND_FORMAT 14u

/* In a sub's body; its flags are behind the words. */
enum { SUB_PACKAGE, SUB_START, SUB_ROOT, SUB_NAME, SUB_FILE, SUB_WORDS };

#define SUB_AT 32u /* the first of them */
#define SUB_FLAGS_AT 92u
#define SUB_IS_NAMED 0x8000u /* its name is a key, and not a glob's */

#define GLOB_NAME_AT 32u /* in its body; and its package */

#define KEY_LENGTH_AT 4u
#define KEY_TEXT_AT 8u
#define KEY_IS_UTF8 1u
#define KEY_WAS_UTF8 2u /* now Latin-1 */

#define TABLE_MAX_AT 24u /* in the body of a package: the last bucket */
#define TABLE_END 32u
#define TABLE_BUCKETS_MAX (1ull << 32)
#define NAMES_COUNT_AT 28u

#define STATEMENT_FUNCTION_AT 16u
#define STATEMENT_LINE_AT 36u
#define INSTRUCTIONS_MAX 4 /* before the first statement of a sub */

#define PROGRAM "<main>"
#define TEXT "(eval)"
#define BEGIN "BEGIN"

static bool read_word(const struct memory_reader *memory, uint64_t address, uint64_t *ret)
{
	return memory_read(memory, address, ret, sizeof(*ret));
}

static bool read_value(const struct memory_reader *memory, uint64_t address, struct value *ret)
{
	return address && !(address & 7) && memory_read(memory, address, ret, sizeof(*ret));
}

/* Bytes that are no UTF-8 are Latin-1, as Perl takes them. */
static void add_text(struct strbuf *out, const char *bytes, size_t len, bool is_latin)
{
	len = strnlen(bytes, len);
	if (!is_latin && slice_is_utf8(slice_from(bytes, len))) {
		strbuf_add(out, bytes, len);
		return;
	}
	for (size_t i = 0; i < len; i++)
		utf8_add_character(out, (uint8_t)bytes[i]);
}

/* A name as keys of Perl's tables are. False when there is none. */
static bool add_key(const struct memory_reader *memory, uint64_t key, struct strbuf *out)
{
	char bytes[PERL_TEXT_MAX];
	uint8_t flags = 0;
	int32_t length;
	size_t len;

	if (!key || key & 3 || !memory_read(memory, key + KEY_LENGTH_AT, &length, sizeof(length)) ||
	    length <= 0)
		return false;
	len = (size_t)length < sizeof(bytes) ? (size_t)length : sizeof(bytes);
	if (!memory_read(memory, key + KEY_TEXT_AT, bytes, len) ||
	    !memory_read(memory, key + KEY_TEXT_AT + (uint64_t)length + 1, &flags, 1))
		return false;
	if (flags & KEY_IS_UTF8)
		len = utf8_cut(slice_from(bytes, len), len).len;
	add_text(out, bytes, len, flags & KEY_WAS_UTF8 && !(flags & KEY_IS_UTF8));
	return true;
}

/* A C string, up to PERL_TEXT_MAX bytes; reads no page behind its end. */
static bool add_string(const struct memory_reader *memory, uint64_t address, struct strbuf *out)
{
	char bytes[PERL_TEXT_MAX];
	size_t len = 0;

	while (address && len < sizeof(bytes)) {
		size_t here = 64 - (address + len) % 64;

		here = here < sizeof(bytes) - len ? here : sizeof(bytes) - len;
		if (!memory_read(memory, address + len, bytes + len, here))
			return false;
		if (memchr(bytes + len, 0, here)) {
			add_text(out, bytes, sizeof(bytes), false);
			return true;
		}
		len += here;
	}
	if (len)
		add_text(out, bytes, utf8_cut(slice_from(bytes, len), len).len, false);
	return len;
}

/* ---- packages ---- */

/* Where the name of a package is kept: behind its body, or behind its buckets. */
static bool find_name(const struct memory_reader *memory, const struct perl_layout *layout,
		      const struct value *package, uint64_t *ret)
{
	uint64_t last;

	if (layout->has_names_in_bodies) {
		*ret = package->body + TABLE_END;
		return true;
	}
	if (!read_word(memory, package->body + TABLE_MAX_AT, &last) || last >= TABLE_BUCKETS_MAX)
		return false;
	*ret = package->word + 8 * (last + 1);
	return true;
}

static void add_package(const struct memory_reader *memory, const struct perl_layout *layout,
			uint64_t address, struct strbuf *out)
{
	struct value package;
	uint64_t at, name;
	int32_t count;

	if (!read_value(memory, address, &package) || !find_name(memory, layout, &package, &at) ||
	    !read_word(memory, at, &name) ||
	    !memory_read(memory, at + NAMES_COUNT_AT, &count, sizeof(count)) ||
	    (count && !read_word(memory, name, &name)))
		return;
	if (add_key(memory, name, out))
		strbuf_add_text(out, "::");
}

/* ---- subs ---- */

static bool add_glob(const struct memory_reader *memory, const struct perl_layout *layout,
		     uint64_t address, struct strbuf *out)
{
	uint64_t name[2]; /* and package */
	struct value glob;

	if (!read_value(memory, address, &glob) || VALUE_KIND(&glob) != KIND_GLOB ||
	    !memory_read(memory, glob.body + GLOB_NAME_AT, name, sizeof(name)))
		return false;
	add_package(memory, layout, name[1], out);
	return add_key(memory, name[0], out);
}

/* The line of its first statement; 0 = not known. */
static uint32_t first_line(const struct memory_reader *memory, uint64_t function, uint64_t start)
{
	for (int i = 0; i < INSTRUCTIONS_MAX && start; i++) {
		uint64_t instruction[STATEMENT_FUNCTION_AT / 8 + 1];
		uint32_t line;

		if (!memory_read(memory, start, instruction, sizeof(instruction)))
			return 0;
		if (instruction[STATEMENT_FUNCTION_AT / 8] == function)
			return memory_read(memory, start + STATEMENT_LINE_AT, &line,
					   sizeof(line)) &&
					       line <= INT32_MAX
				       ? line
				       : 0;
		start = instruction[0];
	}
	return 0;
}

/* What was evaluated has a number in place of a name, another one each time. */
static char *take_file(struct strbuf *file)
{
	char *copy;

	if (file->len >= strlen("(eval ") && !memcmp(file->data, "(eval ", strlen("(eval ")))
		copy = mem_strndup(TEXT, strlen(TEXT));
	else
		copy = mem_strndup(file->len ? file->data : "", file->len);
	strbuf_free(file);
	return copy;
}

static enum script_code_result read_sub(const struct memory_reader *memory,
					const struct perl_layout *layout, uint64_t bias,
					uint64_t address, struct script_code *ret)
{
	struct strbuf name = { 0 }, file = { 0 };
	__u64 words[SUB_WORDS];
	struct value sub;
	uint32_t flags;
	bool is_named;

	if (!read_value(memory, address, &sub))
		return SCRIPT_CODE_GONE;
	if (VALUE_KIND(&sub) != KIND_SUB && VALUE_KIND(&sub) != KIND_FORMAT)
		return SCRIPT_CODE_OTHER;
	if (!memory_read(memory, sub.body + SUB_AT, words, sizeof(words)) ||
	    !memory_read(memory, sub.body + SUB_FLAGS_AT, &flags, sizeof(flags)))
		return SCRIPT_CODE_GONE;
	if (flags & SUB_IS_NAMED)
		add_package(memory, layout, words[SUB_PACKAGE], &name);
	is_named = flags & SUB_IS_NAMED ? add_key(memory, words[SUB_NAME], &name)
					: add_glob(memory, layout, words[SUB_NAME], &name);
	if (!is_named) {
		strbuf_free(&name);
		return SCRIPT_CODE_GONE;
	}
	ret->function = mem_strndup(name.data, name.len);
	strbuf_free(&name);
	add_string(memory, words[SUB_FILE], &file);
	ret->file = take_file(&file);
	ret->first_line = first_line(memory, layout->statement + bias, words[SUB_START]);
	ret->proof = script_perl_proof(words, PERL_CODE_SUB) >> 32;
	return SCRIPT_CODE_READ;
}

/* ---- code in no sub ---- */

/* In builds without threads the name is a glob's: "_<shop.pl". */
static bool add_file(const struct memory_reader *memory, const struct perl_layout *layout,
		     uint64_t address, struct strbuf *out)
{
	uint64_t name;
	struct value glob;

	if (layout->is_threaded)
		return add_string(memory, address, out);
	return read_value(memory, address, &glob) && VALUE_KIND(&glob) == KIND_GLOB &&
	       read_word(memory, glob.body + GLOB_NAME_AT, &name) && add_key(memory, name, out) &&
	       out->len > 2;
}

static void add_label(enum script_perl_code kind, const char *file, struct strbuf *out)
{
	const char *base = strrchr(file, '/');

	if (kind == PERL_CODE_FILE)
		strbuf_addf(out, "<require %s>", base ? base + 1 : file);
	else if (kind == PERL_CODE_BEGIN)
		strbuf_add_text(out, BEGIN);
	else
		strbuf_add_text(out, kind == PERL_CODE_TEXT ? TEXT : PROGRAM);
}

static enum script_code_result read_file(const struct memory_reader *memory,
					 const struct perl_layout *layout,
					 enum script_perl_code kind, uint64_t address,
					 struct script_code *ret)
{
	__u64 words[SCRIPT_PROOF_WORDS] = { 0 };
	struct strbuf file = { 0 }, label = { 0 };

	if (address && (!memory_read(memory, address, words, layout->is_threaded ? 16 : 8) ||
			!add_file(memory, layout, address, &file))) {
		strbuf_free(&file);
		return SCRIPT_CODE_GONE;
	}
	if (!layout->is_threaded && file.len) {
		struct strbuf rest = { 0 };

		strbuf_add(&rest, file.data + 2, file.len - 2);
		strbuf_free(&file);
		file = rest;
	}
	ret->file = take_file(&file);
	add_label(kind, ret->file, &label);
	ret->function = mem_strndup(label.data, label.len);
	strbuf_free(&label);
	ret->proof = script_perl_proof(words, kind) >> 32;
	return SCRIPT_CODE_READ;
}

enum script_code_result perl_code_read(const struct memory_reader *memory,
				       const struct perl_layout *layout, uint64_t bias,
				       uint64_t key, uint64_t address, struct script_code *ret)
{
	enum script_perl_code kind = script_perl_kind(key);
	enum script_code_result result;

	*ret = (struct script_code){ 0 };
	result = kind == PERL_CODE_SUB ? read_sub(memory, layout, bias, address, ret)
				       : read_file(memory, layout, kind, address, ret);
	if (result == SCRIPT_CODE_READ)
		ret->name = mem_strndup(ret->function, strlen(ret->function));
	return result;
}
