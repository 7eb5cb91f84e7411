/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/display/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>

#include "base/strbuf.h"

#define D_INPUT_BYTES_MAX 4096u
/* Each back reference can double the output, and libiberty sets no bound to it. */
#define D_REFERENCES_MAX 20u

struct output {
	struct strbuf text;
	jmp_buf too_long;
};

bool demangle_parse_mode(struct slice text, enum demangle_mode *ret)
{
	static const char *const names[] = { "full", "templates", "simple", "none" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!slice_is(text, names[i]))
			continue;
		*ret = (enum demangle_mode)i;
		return true;
	}
	return false;
}

bool demangle_is_mangled(struct slice name)
{
	return slice_starts_with(name, SLICE_LITERAL("_Z")) ||
	       slice_starts_with(name, SLICE_LITERAL("_R"));
}

/*
 * libiberty has no way to stop early, and the output can be exponentially longer than the input,
 * so this jumps out. The callback interface keeps its state on the stack: nothing is lost.
 */
static void add_output(const char *text, size_t len, void *context)
{
	struct output *output = context;

	if (len > DEMANGLE_OUTPUT_BYTES_MAX - output->text.len)
		longjmp(output->too_long, 1);
	strbuf_add(&output->text, text, len);
}

static bool read_rust(const char *name, struct output *output)
{
	if (setjmp(output->too_long))
		return false;
	return rust_demangle_callback(name, DMGL_PARAMS | DMGL_ANSI, add_output, output) &&
	       output->text.len;
}

static bool read_cpp(const char *name, enum demangle_mode mode, struct output *output)
{
	const int options = mode == DEMANGLE_FULL ? DMGL_PARAMS | DMGL_ANSI : DMGL_ANSI;

	if (setjmp(output->too_long))
		return false;
	strbuf_clear(&output->text);
	return cplus_demangle_v3_callback(name, options, add_output, output) && output->text.len;
}

static bool read_d(struct slice name, struct output *output)
{
	unsigned references = 0;
	char *text;

	if (name.len > D_INPUT_BYTES_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++)
		references += name.data[i] == 'Q';
	if (references > D_REFERENCES_MAX)
		return false;
	text = dlang_demangle(name.data, 0);
	if (!text)
		return false;
	if (strlen(text) <= DEMANGLE_OUTPUT_BYTES_MAX)
		strbuf_add_text(&output->text, text);
	free(text);
	return output->text.len > 0;
}

/* "camlStdlib__List__map_123": module path, then the name with its stamp; "$xx" is a byte. */
static bool read_ocaml(struct slice name, struct output *output)
{
	size_t end = name.len, at = strlen("caml");

	while (end > at && isdigit((unsigned char)name.data[end - 1]))
		end--;
	if (end == name.len || name.data[end - 1] != '_' || end - 1 <= at)
		end = name.len;
	else
		end--;
	while (at < end) {
		const char *p = name.data + at;

		if (end - at > 2 && p[0] == '_' && p[1] == '_' && output->text.len) {
			strbuf_add_byte(&output->text, '.');
			at += 2;
		} else if (end - at > 2 && p[0] == '$' && slice_hex_digit(p[1]) >= 0 &&
			   slice_hex_digit(p[2]) >= 0) {
			strbuf_add_byte(&output->text,
					(char)(slice_hex_digit(p[1]) << 4 | slice_hex_digit(p[2])));
			at += 3;
		} else {
			strbuf_add_byte(&output->text, *p);
			at++;
		}
	}
	return memchr(output->text.data, '.', output->text.len) != NULL;
}

/* "operator<", "operator<<", "operator->" and the like: the length of the sign, or 0. */
static size_t operator_bytes(struct slice name, size_t at)
{
	static const char *const signs[] = { "<=>", "<<=", ">>=", "->*", "<<", ">>",
					     "<=",  ">=",  "->",  "<",	 ">" };
	const size_t word = strlen("operator");

	if (at < word || memcmp(name.data + at - word, "operator", word))
		return 0;
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		if (slice_starts_with(slice_tail(name, at), slice_of(signs[i])))
			return strlen(signs[i]);
	return 0;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* What is outside of angle brackets; false when they do not balance. */
static bool add_without_arguments(struct slice name, struct strbuf *out)
{
	size_t depth = 0;
	bool keeps = false;

	for (size_t i = 0; i < name.len; i++) {
		size_t sign = depth ? 0 : operator_bytes(name, i);
		bool opens = !sign && name.data[i] == '<';
		bool closes = !sign && name.data[i] == '>' && depth && name.data[i - 1] != '-';

		/*
		 * A part of a name of Rust can be nothing but brackets: "<T as Trait>::call". The
		 * generic arguments in "f::<T>" follow colons, too, but not at the name's start.
		 */
		if (opens && !depth++) {
			keeps = !i || (!is_word(name.data[i - 1]) && name.data[i - 1] != ':' &&
				       !(i > 1 && name.data[i - 2] == '<'));
			if (!keeps && out->len > 2 && !memcmp(out->data + out->len - 2, "::", 2))
				out->len -= 2;
		}
		if (!depth || keeps)
			strbuf_add(out, name.data + i, sign ? sign : 1);
		i += sign ? sign - 1 : 0;
		depth -= closes;
	}
	while (out->len && out->data[out->len - 1] == ' ') /* of "operator< <int>" */
		out->len--;
	return !depth && out->len;
}

static void cut_arguments(struct strbuf *text)
{
	struct strbuf cut = { 0 };

	if (add_without_arguments(strbuf_slice(text), &cut)) {
		strbuf_clear(text);
		strbuf_add_slice(text, strbuf_slice(&cut));
	}
	strbuf_free(&cut);
}

static bool read_name(struct slice name, enum demangle_mode mode, struct output *output)
{
	if (demangle_is_mangled(name)) {
		if (!read_rust(name.data, output) && !read_cpp(name.data, mode, output))
			return false;
		if (mode == DEMANGLE_SIMPLE)
			cut_arguments(&output->text);
		return true;
	}
	if (slice_starts_with(name, SLICE_LITERAL("_D")))
		return read_d(name, output);
	if (slice_starts_with(name, SLICE_LITERAL("caml")) && name.len > 4 &&
	    isupper((unsigned char)name.data[4]))
		return read_ocaml(name, output);
	return false;
}

bool demangle(struct slice name, struct arena *arena, struct slice *ret)
{
	return demangle_as(name, DEMANGLE_FULL, arena, ret);
}

/* Stubs of the linker are called after what they call: "_ZN1A1bEv@plt". */
static struct slice cut_plt(struct slice name, struct slice *ret_suffix)
{
	const struct slice suffix = SLICE_LITERAL("@plt");
	size_t len = name.len > suffix.len ? name.len - suffix.len : name.len;

	*ret_suffix = slice_tail(name, len);
	if (slice_equal(*ret_suffix, suffix))
		return slice_from(name.data, len);
	*ret_suffix = slice_tail(name, name.len);
	return name;
}

bool demangle_as(struct slice name, enum demangle_mode mode, struct arena *arena, struct slice *ret)
{
	struct output output = { .text = { 0 } };
	struct slice copy, suffix;
	bool done;

	if (mode == DEMANGLE_NONE || name.len < 3 || name.len > DEMANGLE_INPUT_BYTES_MAX)
		return false;
	if (name.data[0] != '_' && name.data[0] != 'c')
		return false;
	copy = arena_copy(arena, cut_plt(name, &suffix));
	done = copy.len && read_name(copy, mode, &output) && output.text.len;
	strbuf_add_slice(&output.text, suffix);
	if (done)
		*ret = arena_copy(arena, strbuf_slice(&output.text));
	strbuf_free(&output.text);
	return done && ret->len;
}
