/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/name/function_name.h"

#include <string.h>

#include "server/resolve/display/java_name.h"

/* "Lcom/shop/Cart;::add", or "com/shop/Cart.add": Go's "runtime/pprof.Do" has no class. */
static bool names_class(struct slice name)
{
	const char *slash = name.len ? memrchr(name.data, '/', name.len) : NULL;

	return (slash && slash + 1 < name.data + name.len && slash[1] >= 'A' && slash[1] <= 'Z') ||
	       slice_find_byte(name, ';') != SIZE_MAX;
}

/* True if it may be the JVM's: profiles of others often do not say. */
static bool may_be_java(enum frame_kind kind, struct slice name)
{
	return kind == FRAME_JVM ||
	       ((kind == FRAME_UNKNOWN || kind == FRAME_NATIVE) && names_class(name));
}

static bool read_java(struct slice name, enum demangle_mode mode, struct arena *arena,
		      struct slice *ret)
{
	struct strbuf text = { 0 };
	bool done = java_name_read(name, mode == DEMANGLE_FULL, &text);

	if (done)
		*ret = arena_copy(arena, strbuf_slice(&text));
	strbuf_free(&text);
	return done && ret->len;
}

struct slice function_name_shown(const struct function_name *function, enum demangle_mode mode,
				 struct arena *arena)
{
	struct slice system = function->system_name.len ? function->system_name : function->name;
	struct slice shown;

	if (mode == DEMANGLE_NONE)
		return system;
	if (demangle_as(system, mode, arena, &shown))
		return shown;
	if (may_be_java(function->kind, system) && read_java(system, mode, arena, &shown))
		return shown;
	return function->name.len ? function->name : system;
}
