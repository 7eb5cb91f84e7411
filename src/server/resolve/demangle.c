/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>

#include "base/strbuf.h"

struct output {
	struct strbuf text;
	jmp_buf too_long;
};

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

static bool run(const char *name, struct output *output)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;

	if (setjmp(output->too_long))
		return false;
	if (rust_demangle_callback(name, options, add_output, output))
		return true;
	strbuf_clear(&output->text);
	return cplus_demangle_v3_callback(name, options, add_output, output);
}

bool demangle(struct slice name, struct arena *arena, struct slice *ret)
{
	struct output output = { .text = { 0 } };
	struct slice copy;
	bool done;

	if (!demangle_is_mangled(name) || name.len > DEMANGLE_INPUT_BYTES_MAX)
		return false;
	copy = arena_copy(arena, name);
	done = copy.len && run(copy.data, &output) && output.text.len;
	if (done)
		*ret = arena_copy(arena, strbuf_slice(&output.text));
	strbuf_free(&output.text);
	return done && ret->len;
}
