/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jit/code_name.h"

#define ANONYMOUS SLICE_LITERAL("(anonymous)")
#define PYTHON SLICE_LITERAL("py::")

/* V8's kinds of code with a source position, and those without (CodeEventListener's tags). */
static const char *const v8_sources[] = { "JS", "LazyCompile", "Function", "Eval", "Script" };
static const char *const v8_own[] = { "Builtin", "BytecodeHandler", "Stub",	"Handler",
				      "RegExp",	 "Callback",	    "CodeEntry" };

/* What a file that starts a path in a name looks like: absolute, a URL, or a module of Node's. */
static const char *const file_starts[] = { "/", "file:", "node:", "http:", "https:", "wasm:" };

static bool is_one_of(struct slice text, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (slice_is(text, names[i]))
			return true;
	return false;
}

/* Takes ":12" off the end; false leaves all as it was. */
static bool take_number(struct slice *text, uint32_t *ret)
{
	size_t at = text->len;
	uint64_t value;

	while (at && text->data[at - 1] >= '0' && text->data[at - 1] <= '9')
		at--;
	if (!at || text->data[at - 1] != ':' || !slice_parse_u64(slice_tail(*text, at), &value) ||
	    value > UINT32_MAX)
		return false;
	text->len = at - 1;
	*ret = (uint32_t)value;
	return true;
}

static bool starts_file(struct slice text)
{
	for (size_t i = 0; i < sizeof(file_starts) / sizeof(file_starts[0]); i++)
		if (slice_starts_with(text, slice_of(file_starts[i])))
			return true;
	return false;
}

/* The blank before the file: both sides may hold blanks ("get size", "/srv/my app"). */
static size_t find_separator(struct slice text)
{
	size_t last = SIZE_MAX;

	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] != ' ')
			continue;
		if (starts_file(slice_tail(text, i + 1)))
			return i;
		last = i;
	}
	return last;
}

/* `text` follows the kind: "*parse /srv/app/a.js:12:3". */
static void parse_v8_source(struct slice text, struct code_name *ret)
{
	uint32_t number, line;
	size_t separator;

	while (text.len && strchr("~^*+ ", text.data[0]) && text.data[0] &&
	       !(text.data[0] == ' ' && starts_file(slice_tail(text, 1))))
		text = slice_tail(text, 1);
	if (take_number(&text, &number))
		ret->line = take_number(&text, &line) ? line : number;
	separator = find_separator(text);
	ret->function = text;
	if (separator != SIZE_MAX) {
		ret->function.len = separator;
		ret->file = slice_tail(text, separator + 1);
	}
	while (ret->function.len && ret->function.data[ret->function.len - 1] == ' ')
		ret->function.len--;
	if (!ret->function.len)
		ret->function = ANONYMOUS;
	if (!ret->file.len)
		ret->line = 0; /* of nothing */
}

static void parse_python(struct slice text, struct code_name *ret)
{
	ret->function = slice_cut(text, ':', &ret->file);
	ret->kind = FRAME_PYTHON;
}

void code_name_parse(const struct code_place *place, enum frame_kind runtime, struct code_name *ret)
{
	struct code_name name = { runtime, place->name, place->file, place->line };
	struct slice rest, head = slice_cut(place->name, ':', &rest);

	if (slice_starts_with(place->name, PYTHON)) {
		parse_python(slice_tail(place->name, PYTHON.len), &name);
	} else if (rest.len && is_one_of(head, v8_sources, sizeof(v8_sources) / sizeof(char *))) {
		name.kind = FRAME_NODE;
		parse_v8_source(rest, &name);
	} else if (rest.len && is_one_of(head, v8_own, sizeof(v8_own) / sizeof(char *))) {
		name.kind = FRAME_NODE;
	}
	if (!name.function.len)
		name.function = place->name;
	*ret = name;
}

static const struct {
	const char *prefix; /* of the file's name */
	enum frame_kind kind;
} runtimes[] = {
	{ "libjvm.so", FRAME_JVM }, { "libcoreclr.so", FRAME_DOTNET },
	{ "beam.smp", FRAME_BEAM }, { "libruby", FRAME_RUBY },
	{ "ruby", FRAME_RUBY },	    { "libluajit", FRAME_LUA },
	{ "luajit", FRAME_LUA },    { "php", FRAME_PHP },
	{ "libphp", FRAME_PHP },    { "libpypy", FRAME_PYTHON },
};

enum frame_kind code_name_runtime(struct slice path)
{
	for (size_t i = path.len; i > 0; i--) {
		if (path.data[i - 1] != '/')
			continue;
		path = slice_tail(path, i);
		break;
	}
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (slice_starts_with(path, slice_of(runtimes[i].prefix)))
			return runtimes[i].kind;
	return FRAME_NATIVE;
}
