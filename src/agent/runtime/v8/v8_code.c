/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: V8's src/objects/shared-function-info.tq, scope-info.tq, script.tq.
 */
#include "agent/runtime/v8/v8_code.h"

#include <string.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/v8/v8_text.h"
#include "agent/runtime/v8/v8_types.h"
#include "base/mem.h"
#include "base/slice.h"

/* Behind the variables: class variable, receiver, function with its slot, inferred name, position.
 */
#define SCOPE_WORDS_MAX 6u
#define SCOPE_VARIABLES_MAX 4096u
#define SCOPE_LOCALS_INLINED_MAX 75u /* names, over which they are in a table of their own */
#define ANONYMOUS "(anonymous)"

/* A scope's flags, which have not changed since 8.4. */
#define SCOPE_RECEIVER(flags) ((flags) >> 7 & 3) /* 1, 2 = on the stack, in the context */
#define SCOPE_HAS_CLASS_VARIABLE(flags) ((flags) >> 10 & 1)
#define SCOPE_HAS_FUNCTION(flags) (((flags) >> 12 & 3) != 0)
#define SCOPE_HAS_INFERRED_NAME(flags) ((flags) >> 14 & 1)

/* Functions with the fields and blocks of a class: of an object; of the class, where V8 knows two.
 */
#define KIND_OF_MEMBERS 24u
#define KIND_OF_STATIC 25u
#define KIND_OF_STATIC_LATER 26u

#define POSITION_NONE UINT32_MAX

struct source {
	const struct memory_reader *memory;
	const struct v8_layout *layout;
};

/* What is read of a function, besides its script. */
struct identity {
	struct strbuf name;
	uint32_t position; /* in the source, of its parameters; POSITION_NONE = not known */
};

static bool read_word(const struct source *source, uint64_t address, uint64_t *ret)
{
	return v8_word_read(source->memory, source->layout, address, ret);
}

/* Numbers are in the upper half, or, from 13 on, flags in the lower, or they are all there is. */
static bool read_flags(const struct source *source, uint64_t address, uint32_t *ret)
{
	uint32_t words[2] = { 0 };

	if (!memory_read(source->memory, address, words, v8_word_bytes(source->layout)))
		return false;
	*ret = words[0] ? words[0] : words[1];
	return true;
}

/* Where the words behind a scope's variables are. */
static bool find_scope_rest(const struct source *source, uint64_t scope, uint32_t *ret_flags,
			    uint64_t *ret)
{
	uint64_t count, names;
	uint64_t at = scope - 1 + source->layout->scope_flags;
	uint32_t bytes = v8_word_bytes(source->layout);

	if (!read_flags(source, at, ret_flags) || !read_word(source, at + 2ull * bytes, &count))
		return false;
	count >>= 32;
	if (count > SCOPE_VARIABLES_MAX)
		return false;
	names = count < SCOPE_LOCALS_INLINED_MAX ? count : 1;
	*ret = scope - 1 + source->layout->scope_variables + bytes * (names + count);
	return true;
}

static bool read_words(const struct source *source, uint64_t address, uint64_t *ret, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!read_word(source, address + i * v8_word_bytes(source->layout), &ret[i]))
			return false;
	return true;
}

/* A number of the scope that may be one; otherwise there is none. */
static uint32_t position_of(uint64_t word)
{
	return (uint32_t)word == 0 && word >> 32 <= INT32_MAX ? (uint32_t)(word >> 32)
							      : POSITION_NONE;
}

/* From 12 on these have no name, and were "assigned" to the class; V8 calls them so by their kind.
 */
static const char *initializer_name(const struct v8_layout *layout, uint32_t flags)
{
	uint32_t kind = flags >> layout->scope_kind & 31;

	if (kind == KIND_OF_MEMBERS)
		return "<instance_members_initializer>";
	return kind == KIND_OF_STATIC || kind == KIND_OF_STATIC_LATER ? "<static_initializer>"
								      : NULL;
}

/* What the scope says of its function: its name, or else what it was assigned to; and its place. */
static void read_scope(const struct source *source, uint64_t scope, struct identity *ret)
{
	uint64_t words[SCOPE_WORDS_MAX], at, position;
	const char *initializer;
	uint32_t flags, next;

	if (!find_scope_rest(source, scope, &flags, &at) ||
	    !read_words(source, at, words, SCOPE_WORDS_MAX))
		return;
	next = SCOPE_HAS_CLASS_VARIABLE(flags);
	if (source->layout->scope_has_receiver)
		next += SCOPE_RECEIVER(flags) == 1 || SCOPE_RECEIVER(flags) == 2;
	initializer = initializer_name(source->layout, flags);
	if (initializer)
		strbuf_add_text(&ret->name, initializer);
	if (SCOPE_HAS_FUNCTION(flags)) {
		if (!initializer)
			v8_text_read(source->memory, source->layout, words[next], &ret->name);
		next += 2;
	}
	if (SCOPE_HAS_INFERRED_NAME(flags)) {
		if (!ret->name.len)
			v8_text_read(source->memory, source->layout, words[next], &ret->name);
		next++;
	}
	position = words[next];
	if (source->layout->scope_position != V8_NO_FIELD &&
	    !read_word(source, scope - 1 + source->layout->scope_position, &position))
		return;
	ret->position = position_of(position);
}

static void read_identity(const struct source *source, uint64_t word, struct identity *ret)
{
	uint16_t type = v8_type(source->memory, source->layout, word);

	if (type == source->layout->type_scope)
		read_scope(source, word, ret);
	else if (type < source->layout->text_types)
		v8_text_read(source->memory, source->layout, word, &ret->name);
	if (!ret->name.len)
		strbuf_add_text(&ret->name, ANONYMOUS);
}

static int hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	digit |= 0x20;
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* The path of a module's URL. */
static char *path_of(struct slice url)
{
	struct strbuf path = { 0 };
	char *copy;

	for (size_t i = 0; i < url.len; i++) {
		int high = i + 2 < url.len ? hex_digit(url.data[i + 1]) : -1;
		int low = i + 2 < url.len ? hex_digit(url.data[i + 2]) : -1;

		if (url.data[i] == '%' && high >= 0 && low >= 0 && (high || low)) {
			strbuf_add_byte(&path, (char)(high << 4 | low));
			i += 2;
		} else {
			strbuf_add_byte(&path, url.data[i]);
		}
	}
	copy = slice_is_utf8(strbuf_slice(&path)) ? mem_strndup(path.data, path.len)
						  : mem_strndup(url.data, url.len);
	strbuf_free(&path);
	return copy;
}

static char *read_file(const struct source *source, uint64_t script)
{
	struct strbuf text = { 0 };
	char *file = NULL;
	uint64_t name;

	if (read_word(source, script - 1 + source->layout->script_name, &name) &&
	    v8_text_read(source->memory, source->layout, name, &text) && text.len) {
		struct slice url = strbuf_slice(&text), scheme = SLICE_LITERAL("file://");

		if (slice_starts_with(url, scheme))
			file = path_of(slice_from(url.data + scheme.len, url.len - scheme.len));
		else
			file = mem_strndup(url.data, url.len);
	}
	strbuf_free(&text);
	return file ? file : mem_strndup(ANONYMOUS, strlen(ANONYMOUS));
}

static bool prove(const struct source *source, uint64_t address, uint32_t *ret)
{
	__u64 words[SCRIPT_V8_PROOF_WORDS];

	if (!memory_read(source->memory, address + source->layout->shared_script, words,
			 sizeof(words)))
		return false;
	*ret = script_v8_proof(words, source->layout->is_compressed);
	return true;
}

/* Languages that become JavaScript first, with other lines. */
static bool is_compiled(const char *file)
{
	static const char *const endings[] = { ".ts", ".mts", ".cts", ".tsx", ".jsx" };

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t len = strlen(file), ending = strlen(endings[i]);

		if (len >= ending && !memcmp(file + len - ending, endings[i], ending))
			return true;
	}
	return false;
}

/* Its script's part; "" for V8's own functions, which have none. */
static void read_script(const struct source *source, struct v8_lines *lines, uint64_t process,
			uint64_t script, uint32_t position, struct script_code *ret)
{
	if (v8_type(source->memory, source->layout, script) != source->layout->type_script) {
		ret->file = mem_strndup("", 0);
		return;
	}
	ret->file = read_file(source, script);
	if (position != POSITION_NONE && !(source->layout->is_not_node && is_compiled(ret->file)))
		ret->first_line = v8_lines_of_script(lines, process, source->memory, source->layout,
						     script, position);
}

enum script_code_result v8_code_read(const struct memory_reader *memory,
				     const struct v8_layout *layout, struct v8_lines *lines,
				     uint64_t process, uint64_t address, struct script_code *ret)
{
	struct v8_layout own = *layout;
	const struct source source = { memory, &own };
	struct identity identity = { .position = POSITION_NONE };
	uint64_t name, script;

	*ret = (struct script_code){ 0 };
	if (v8_type(memory, layout, address + 1) == V8_NO_FIELD)
		return SCRIPT_CODE_GONE;
	if (!v8_types_find(memory, &own, address + 1))
		return SCRIPT_CODE_OTHER;
	if (!prove(&source, address, &ret->proof) ||
	    !read_word(&source, address + own.shared_name, &name) ||
	    !read_word(&source, address + own.shared_script, &script))
		return SCRIPT_CODE_GONE;
	read_identity(&source, name, &identity);
	ret->name = mem_strndup(identity.name.data, identity.name.len);
	ret->function = mem_strndup(identity.name.data, identity.name.len);
	strbuf_free(&identity.name);
	read_script(&source, lines, process, script, identity.position, ret);
	return SCRIPT_CODE_READ;
}

const char *v8_frame_name(const struct v8_layout *layout, uint64_t number)
{
	static const char *const names[V8_FRAMES] = { "[regular expression]", "[wasm]",
						      "[wasm to js]",	      "[js to wasm]",
						      "[c to wasm]",	      "[wasm exit]" };

	for (size_t i = 0; i < V8_FRAMES; i++)
		if (number && layout->frames[i] == number)
			return names[i];
	return NULL;
}
