/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/script_frames.h"

#include <assert.h>
#include <stdio.h>

#include "agent/describe/text.h"
#include "agent/runtime/lua/lua_code.h"
#include "agent/runtime/php/php_code.h"
#include "agent/runtime/puc/puc_code.h"
#include "agent/runtime/python/python_lines.h"
#include "agent/runtime/ruby/ruby_code.h"
#include "agent/runtime/ruby/ruby_lines.h"
#include "agent/runtime/runtime_metrics.h"
#include "agent/runtime/splice.h"

#define PROBLEM_BYTES_MAX 96

#define IN_HEAP "[truncated: virtual thread's frames in the heap]"

static uint32_t marker(struct tables *tables, const char *text)
{
	struct frame frame = { .kind = FRAME_MARKER,
			       .function = tables_string(tables, slice_of(text)) };

	return tables_frame(tables, &frame);
}

/* What frames of each language are. */
static const struct language {
	enum frame_kind kind;
	const char *mapping, *nameless;
	const char *cut[SCRIPT_ENDS]; /* by enum script_end */
} languages[SCRIPT_KINDS] = {
	[SCRIPT_PYTHON] = { FRAME_PYTHON,
			    "[python]",
			    "[python: name not read]",
			    { "[truncated: unreadable python frame]",
			      "[truncated: too many python frames]", IN_HEAP,
			      "[guess: python frames]" } },
	[SCRIPT_V8] = { FRAME_NODE,
			"[javascript]",
			"[javascript: name not read]",
			{ IN_HEAP, "[truncated: too many javascript frames]", IN_HEAP,
			  "[guess: javascript frames]" } },
	[SCRIPT_HOTSPOT] = { FRAME_JVM,
			     "[java]",
			     "[java: name not read]",
			     { IN_HEAP, "[truncated: too many java frames]", IN_HEAP } },
	[SCRIPT_RUBY] = { FRAME_RUBY,
			  "[ruby]",
			  "[ruby: name not read]",
			  { "[truncated: unreadable ruby frame]",
			    "[truncated: too many ruby frames]", IN_HEAP } },
	[SCRIPT_PHP] = { FRAME_PHP,
			 "[php]",
			 "[php: name not read]",
			 { "[truncated: unreadable php frame]", "[truncated: too many php frames]",
			   IN_HEAP, "[guess: php frames]" } },
	[SCRIPT_PERL] = { FRAME_PERL,
			  "[perl]",
			  "[perl: name not read]",
			  { "[truncated: unreadable perl frame]",
			    "[truncated: too many perl frames]", IN_HEAP } },
	[SCRIPT_LUA] = { FRAME_LUA,
			 "[lua]",
			 "[lua: name not read]",
			 { "[truncated: unreadable lua frame]", "[truncated: too many lua frames]",
			   IN_HEAP, "[guess: lua frames]" } },
	[SCRIPT_PUC] = { FRAME_LUA,
			 "[lua]",
			 "[lua: name not read]",
			 { "[truncated: unreadable lua frame]", "[truncated: too many lua frames]",
			   IN_HEAP } },
	[SCRIPT_JSC] = { FRAME_NODE,
			 "[javascript]",
			 "[javascript: name not read]",
			 { IN_HEAP, "[truncated: too many javascript frames]", IN_HEAP,
			   "[guess: javascript frames]" } },
};

static const char *cut_text(enum script_kind kind, uint64_t why)
{
	const char *text = why < SCRIPT_ENDS ? languages[kind].cut[why] : NULL;

	return text ? text : languages[kind].cut[SCRIPT_UNREADABLE];
}

static enum runtime_kind runtime_of(enum script_kind kind)
{
	switch (kind) {
	case SCRIPT_PYTHON:
		return RUNTIME_PYTHON;
	case SCRIPT_V8:
		return RUNTIME_V8;
	case SCRIPT_HOTSPOT:
		return RUNTIME_HOTSPOT;
	case SCRIPT_RUBY:
		return RUNTIME_RUBY;
	case SCRIPT_PHP:
		return RUNTIME_PHP;
	case SCRIPT_PERL:
		return RUNTIME_PERL;
	case SCRIPT_LUA:
		return RUNTIME_LUA;
	case SCRIPT_PUC:
		return RUNTIME_PUC;
	case SCRIPT_JSC:
		return RUNTIME_JSC;
	case SCRIPT_NONE:
	case SCRIPT_KINDS:
		break;
	}
	assert(!"a kind without frames");
	return RUNTIME_KINDS;
}

static uint32_t cut_frame(struct tables *tables, enum script_kind kind, uint64_t why)
{
	runtime_metrics_count(runtime_of(kind), RUNTIME_FRAME_CUT);
	return marker(tables, cut_text(kind, why));
}

static uint32_t line_of(const struct script_code *code, enum script_kind kind, int32_t position)
{
	struct slice lines = slice_from(code->lines, code->lines_len);

	if (kind == SCRIPT_PYTHON)
		return python_line(lines, code->lines_form, code->first_line, position);
	if (kind == SCRIPT_RUBY)
		return ruby_line(lines, (uint32_t)position);
	if (kind == SCRIPT_PHP)
		return php_line(lines, code->lines_form, (uint32_t)position);
	if (kind == SCRIPT_PUC)
		return puc_line(lines, (uint32_t)position);
	if (kind == SCRIPT_PERL)
		return position >= 0 ? (uint32_t)position : 0;
	return code->first_line;
}

/* Functions of Ruby that are a method's have its class in their name. */
static uint32_t ruby_frame(struct tables *tables, const struct runtimes *runtimes,
			   const struct process_identity *identity, const struct script_code *code,
			   int32_t position, const uint64_t *outer)
{
	const struct script_code *method = NULL;
	struct strbuf label = { 0 };
	struct frame frame = {
		.kind = FRAME_RUBY,
		.mapping_file = tables_string(tables, slice_of("[ruby]")),
		.file = text_intern(tables, slice_of(code->file)),
		.line = line_of(code, SCRIPT_RUBY, position),
		.start_line = code->first_line,
	};

	if (outer && outer[0] & SCRIPT_IS_MARK && SCRIPT_ADDRESS(outer[0]))
		method = runtimes_find(runtimes, identity, outer);
	ruby_full_label(code, method, &label);
	frame.function = text_intern(tables, slice_from(label.data, label.len));
	strbuf_free(&label);
	return tables_frame(tables, &frame);
}

/* The code of a file is called by what has it run. */
static uint32_t php_frame(struct tables *tables, const struct script_code *code,
			  const uint64_t *words, const uint64_t *outer)
{
	struct strbuf label = { 0 };
	struct frame frame = {
		.kind = FRAME_PHP,
		.mapping_file = tables_string(tables, slice_of("[php]")),
		.file = text_intern(tables, slice_of(code->file)),
		.line = line_of(code, SCRIPT_PHP, (int32_t)(uint32_t)words[1]),
		.start_line = code->first_line <= INT32_MAX ? code->first_line : 0,
	};

	php_label(code, !outer, &label);
	frame.function = text_intern(tables, slice_from(label.data, label.len));
	strbuf_free(&label);
	return tables_frame(tables, &frame);
}

static uint32_t frame_at_line(struct tables *tables, enum script_kind kind,
			      const struct script_code *code, uint32_t line)
{
	struct frame frame = {
		.kind = languages[kind].kind,
		.mapping_file = tables_string(tables, slice_of(languages[kind].mapping)),
		.function = text_intern(tables, slice_of(code->function)),
		.file = text_intern(tables, slice_of(code->file)),
		.line = line,
		.start_line = code->first_line <= INT32_MAX ? code->first_line : 0,
	};

	if (strcmp(code->name, code->function) != 0)
		frame.system_name = text_intern(tables, slice_of(code->name));
	return tables_frame(tables, &frame);
}

static uint32_t named_frame(struct tables *tables, enum script_kind kind,
			    const struct script_code *code, int32_t position)
{
	return frame_at_line(tables, kind, code, line_of(code, kind, position));
}

static uint32_t nameless_frame(struct tables *tables, enum script_kind kind)
{
	struct frame frame = {
		.kind = languages[kind].kind,
		.mapping_file = tables_string(tables, slice_of(languages[kind].mapping)),
		.function = tables_string(tables, slice_of(languages[kind].nameless)),
	};

	return tables_frame(tables, &frame);
}

/* A function of Lua is called by what its caller calls it by, if that is Lua as well. */
static uint32_t puc_frame(struct tables *tables, const struct runtimes *runtimes,
			  const struct process_identity *identity, const struct script_code *code,
			  const uint64_t *words, const uint64_t *outer)
{
	const struct script_code *caller = NULL;
	const char *name = NULL;
	struct frame frame = {
		.kind = FRAME_LUA,
		.mapping_file = tables_string(tables, slice_of("[lua]")),
		.file = text_intern(tables, slice_of(code->file)),
		.line = line_of(code, SCRIPT_PUC, (int32_t)(uint32_t)words[1]),
		.start_line = code->first_line <= INT32_MAX ? code->first_line : 0,
	};

	if (outer && !(words[0] & SCRIPT_ENDS_RUN) && !(outer[0] & SCRIPT_IS_CUT))
		caller = runtimes_find(runtimes, identity, outer);
	if (caller && caller->lua)
		name = puc_callee(caller, (uint32_t)outer[1]);
	frame.function = text_intern(tables, slice_of(name ? name : code->function));
	return tables_frame(tables, &frame);
}

/* Code that V8 generated for anything but functions in JavaScript. */
static uint32_t v8_other_frame(struct tables *tables, const struct runtimes *runtimes,
			       const struct process_identity *identity, uint64_t number)
{
	const char *name = runtimes ? runtimes_v8_frame(runtimes, identity, number) : NULL;
	struct frame frame = { .kind = FRAME_NODE,
			       .mapping_file = tables_string(tables, slice_of("[javascript]")) };

	if (!name)
		return SCRIPT_NO_FRAME;
	frame.function = tables_string(tables, slice_of(name));
	return tables_frame(tables, &frame);
}

static uint32_t code_frame(struct tables *tables, const struct runtimes *runtimes,
			   const struct process_identity *identity, enum script_kind kind,
			   const struct script_code *code, const uint64_t *words,
			   const uint64_t *outer)
{
	if (kind == SCRIPT_RUBY)
		return ruby_frame(tables, runtimes, identity, code, (int32_t)(uint32_t)words[1],
				  outer);
	if (kind == SCRIPT_PHP)
		return php_frame(tables, code, words, outer);
	if (kind == SCRIPT_PUC)
		return puc_frame(tables, runtimes, identity, code, words, outer);
	return *code->file || kind != SCRIPT_V8
		       ? named_frame(tables, kind, code, (int32_t)(uint32_t)words[1])
		       : SCRIPT_NO_FRAME;
}

/* All that code_frame looks at. */
static struct recent_place place_of(const struct process_identity *identity, enum script_kind kind,
				    const uint64_t *words, const uint64_t *outer)
{
	struct recent_place place = { identity, { words[0], words[1] } };

	if (outer && (kind == SCRIPT_RUBY || kind == SCRIPT_PUC)) {
		place.words[2] = outer[0];
		place.words[3] = outer[1];
	} else if (kind == SCRIPT_PHP) {
		place.words[2] = !outer;
	}
	return place;
}

uint32_t script_frame_of(struct tables *tables, const struct runtimes *runtimes,
			 const struct process_identity *identity, enum script_kind kind,
			 const uint64_t *words, const uint64_t *outer, struct recent_frames *recent)
{
	const struct recent_place place = place_of(identity, kind, words, outer);
	const struct script_code *code;
	uint32_t frame;
	bool is_loop;

	if (words[0] & SCRIPT_IS_CUT)
		return cut_frame(tables, kind, words[1]);
	if (kind == SCRIPT_V8 && words[0] & SCRIPT_IS_MARK)
		return v8_other_frame(tables, runtimes, identity, words[1]);
	if (recent_frames_find(recent, &place, &frame, &is_loop)) {
		runtime_metrics_count(runtime_of(kind), RUNTIME_FRAME_NAMED);
		return frame;
	}
	code = runtimes ? runtimes_find(runtimes, identity, words) : NULL;
	runtime_metrics_count(runtime_of(kind),
			      code ? RUNTIME_FRAME_NAMED : RUNTIME_FRAME_NOT_READ);
	if (!code)
		return nameless_frame(tables, kind);
	frame = code_frame(tables, runtimes, identity, kind, code, words, outer);
	recent_frames_put(recent, &place, frame, false);
	return frame;
}

/* What has no script is V8's own: its caller stands for it. */
static size_t v8_function_frame(struct tables *tables, const struct runtimes *runtimes,
				const struct process_identity *identity,
				const struct v8_function *function, uint32_t *ret)
{
	const uint64_t words[2] = { function->shared, (uint64_t)function->proof << 32 };
	const struct script_code *code = runtimes_find(runtimes, identity, words);

	runtime_metrics_count(RUNTIME_V8, code ? RUNTIME_FRAME_NAMED : RUNTIME_FRAME_NOT_READ);
	if (code && !*code->file)
		return 0;
	*ret = code ? frame_at_line(tables, SCRIPT_V8, code,
				    function->line ? function->line : code->first_line)
		    : nameless_frame(tables, SCRIPT_V8);
	return 1;
}

/* The garbage collector may have moved it since. */
static bool is_same_function(const struct v8_function *function, const uint64_t *words)
{
	return function->shared == SCRIPT_ADDRESS(words[0]) || function->proof == words[1] >> 32;
}

/*
 * The code at the place is another function's by now, or the function and its script have moved:
 * what is inlined there is not known.
 */
static size_t other_function_frames(struct tables *tables, const struct runtimes *runtimes,
				    const struct process_identity *identity, const uint64_t *words,
				    struct recent_frames *recent, uint32_t ret[2])
{
	uint32_t frame =
		script_frame_of(tables, runtimes, identity, SCRIPT_V8, words, NULL, recent);

	if (frame == SCRIPT_NO_FRAME)
		return 0;
	ret[0] = frame;
	ret[1] = cut_frame(tables, SCRIPT_V8, SCRIPT_UNSURE);
	return 2;
}

size_t script_v8_frames(struct tables *tables, const struct runtimes *runtimes,
			const struct process_identity *identity, const uint64_t *words,
			uint64_t address, struct recent_frames *recent,
			uint32_t ret[SCRIPT_V8_FRAMES_MAX])
{
	const struct v8_place *place =
		runtimes ? runtimes_find_place(runtimes, identity, address) : NULL;
	size_t count = 0;

	if (!place || !place->count)
		return 0;
	if (!is_same_function(&place->functions[0], words))
		return other_function_frames(tables, runtimes, identity, words, recent, ret);
	for (size_t i = 0; i < place->count; i++) {
		if (i == 1 && place->is_cut)
			ret[count++] = cut_frame(tables, SCRIPT_V8, SCRIPT_TOO_DEEP);
		if (i == place->sure)
			ret[count++] = cut_frame(tables, SCRIPT_V8, SCRIPT_UNSURE);
		count += v8_function_frame(tables, runtimes, identity, &place->functions[i],
					   &ret[count]);
	}
	if (place->sure == place->count)
		ret[count++] = cut_frame(tables, SCRIPT_V8, SCRIPT_UNSURE);
	return count;
}

/* A function of LuaJIT is called by what its caller calls it by. */
static uint32_t lua_frame(struct tables *tables, const struct lua_prototype *prototype,
			  const char *name, uint32_t position)
{
	struct frame frame = {
		.kind = FRAME_LUA,
		.mapping_file = tables_string(tables, slice_of("[lua]")),
		.function = text_intern(tables, slice_of(name ? name : prototype->place)),
		.file = text_intern(tables, slice_of(prototype->file)),
		.line = lua_prototype_line(prototype, position),
		.start_line = prototype->first_line <= INT32_MAX ? prototype->first_line : 0,
	};

	return tables_frame(tables, &frame);
}

/* A function in C has nothing else. */
static uint32_t lua_native_frame(struct tables *tables, const char *name)
{
	struct frame frame = { .kind = FRAME_LUA,
			       .mapping_file = tables_string(tables, slice_of("[lua]")) };

	if (!name)
		return SCRIPT_NO_FRAME;
	frame.function = text_intern(tables, slice_of(name));
	return tables_frame(tables, &frame);
}

/* What the frame outside calls that of `words`; NULL = it is no function in Lua, or does not say.
 */
static const char *lua_name(const struct runtimes *runtimes,
			    const struct process_identity *identity, const uint64_t *words,
			    const uint64_t *outer)
{
	const struct script_code *caller;

	if (!outer || words[0] & SCRIPT_ENDS_RUN || outer[0] & (SCRIPT_IS_MARK | SCRIPT_IS_CUT) ||
	    outer[0] >> SCRIPT_PLACE_SHIFT != LUA_FUNCTION)
		return NULL;
	caller = runtimes_find(runtimes, identity, outer);
	if (!caller || !caller->lua || caller->lua->is_trace)
		return NULL;
	return lua_prototype_callee(&caller->lua->prototypes[0], (uint32_t)outer[1]);
}

static size_t lua_trace_frames(struct tables *tables, const struct lua_code *code, const char *name,
			       uint32_t offset, uint32_t ret[SCRIPT_LUA_FRAMES_MAX])
{
	const struct lua_place *places;
	bool is_unsure;
	size_t count = lua_code_places(code, offset, &places, &is_unsure);

	for (size_t i = 0; i < count; i++) {
		const struct lua_prototype *prototype = &code->prototypes[places[i].prototype];

		ret[i] = lua_frame(tables, prototype, name, places[i].position);
		name = lua_prototype_callee(prototype, places[i].position);
	}
	if (is_unsure)
		ret[count++] = marker(tables, cut_text(SCRIPT_LUA, SCRIPT_UNSURE));
	return count;
}

size_t script_lua_frames(struct tables *tables, const struct runtimes *runtimes,
			 const struct process_identity *identity, const uint64_t *words,
			 const uint64_t *outer, uint32_t ret[SCRIPT_LUA_FRAMES_MAX])
{
	const struct script_code *code;
	const char *name;
	size_t count = 0;

	if (words[0] & SCRIPT_IS_CUT || !runtimes) {
		ret[0] = cut_frame(tables, SCRIPT_LUA, words[1]);
		return 1;
	}
	name = lua_name(runtimes, identity, words, outer);
	if (words[0] >> SCRIPT_PLACE_SHIFT == LUA_NATIVE) {
		ret[0] = lua_native_frame(tables, name);
		return ret[0] != SCRIPT_NO_FRAME;
	}
	code = runtimes_find(runtimes, identity, words);
	if (code && code->lua && code->lua->is_trace) {
		count = lua_trace_frames(tables, code->lua, name, (uint32_t)words[1], ret);
	} else if (code && code->lua) {
		ret[0] = lua_frame(tables, code->lua->prototypes, name, (uint32_t)words[1]);
		count = 1;
	}
	runtime_metrics_count(RUNTIME_LUA, count ? RUNTIME_FRAME_NAMED : RUNTIME_FRAME_NOT_READ);
	if (!count)
		ret[count++] = nameless_frame(tables, SCRIPT_LUA);
	return count;
}

static uint32_t jsc_frame(struct tables *tables, const char *function, const char *file)
{
	struct frame frame = {
		.kind = FRAME_NODE,
		.mapping_file = tables_string(tables, slice_of("[javascript]")),
		.function = text_intern(tables, slice_of(function)),
		.file = text_intern(tables, slice_of(file)),
	};

	return tables_frame(tables, &frame);
}

const struct jsc_code *script_jsc_code(const struct runtimes *runtimes,
				       const struct process_identity *identity,
				       const uint64_t *words)
{
	const struct script_code *code = runtimes ? runtimes_find(runtimes, identity, words) : NULL;

	return code ? code->jsc : NULL;
}

/*
 * FTL's code calls what has no effects (sin) without saying where it is. What its number is worth
 * is not known in native code, then.
 */
static bool is_at_site(const struct jsc_code *code, enum script_inside inside)
{
	return inside == SCRIPT_INSIDE_CODE ||
	       (inside == SCRIPT_INSIDE_NATIVE && code->tier == JSC_TIER_DFG);
}

size_t script_jsc_frames(struct tables *tables, const struct runtimes *runtimes,
			 const struct process_identity *identity, const uint64_t *words,
			 enum script_inside inside, uint32_t ret[SCRIPT_JSC_FRAMES_MAX])
{
	const struct script_code *code = runtimes ? runtimes_find(runtimes, identity, words) : NULL;
	const struct jsc_call *calls[JSC_INLINED_MAX];
	size_t count = 0;

	if (code && !*code->function)
		return 0;
	runtime_metrics_count(RUNTIME_JSC, code ? RUNTIME_FRAME_NAMED : RUNTIME_FRAME_NOT_READ);
	ret[0] = code ? jsc_frame(tables, code->function, code->file)
		      : nameless_frame(tables, SCRIPT_JSC);
	if (!code || !code->jsc->has_inlined)
		return 1;
	if (!is_at_site(code->jsc, inside) ||
	    !jsc_code_calls(code->jsc, (uint32_t)words[1], calls, &count)) {
		ret[1] = marker(tables, cut_text(SCRIPT_JSC, SCRIPT_UNSURE));
		return 2;
	}
	for (size_t i = 0; i < count; i++)
		ret[i + 1] = jsc_frame(tables, calls[i]->function, calls[i]->file);
	return count + 1;
}

static uint32_t java_frame(struct tables *tables, const struct java_frame *java)
{
	const struct java_method *method = java->method;
	struct frame frame = {
		.kind = FRAME_JVM,
		.mapping_file = tables_string(tables, slice_of("[java]")),
		.function = text_intern(tables, slice_of(method->function)),
		.file = text_intern(tables, slice_of(method->file)),
		.line = java->line,
		.start_line = java_method_first_line(method),
	};

	return tables_frame(tables, &frame);
}

static uint32_t java_stub_frame(struct tables *tables, const char *name)
{
	char text[PROBLEM_BYTES_MAX];
	struct frame frame = { .kind = FRAME_JVM,
			       .mapping_file = tables_string(tables, slice_of("[java]")) };

	snprintf(text, sizeof(text), "%s%s]", name ? "[stub: " : "[java: name not read",
		 name ? name : "");
	frame.function = text_intern(tables, slice_of(text));
	return tables_frame(tables, &frame);
}

size_t script_java_frames(struct tables *tables, const struct runtimes *runtimes,
			  const struct process_identity *identity, const uint64_t *words,
			  uint32_t ret[JAVA_INLINED_MAX])
{
	const struct script_code *code;
	struct java_frame frames[JAVA_INLINED_MAX];
	size_t count;

	if (words[0] & SCRIPT_IS_CUT) {
		ret[0] = cut_frame(tables, SCRIPT_HOTSPOT, SCRIPT_IN_HEAP);
		return 1;
	}
	code = runtimes_find(runtimes, identity, words);
	runtime_metrics_count(RUNTIME_HOTSPOT,
			      code && code->java ? RUNTIME_FRAME_NAMED : RUNTIME_FRAME_NOT_READ);
	if (!code || !code->java || code->java->stub) {
		ret[0] = java_stub_frame(tables, code && code->java ? code->java->stub : NULL);
		return 1;
	}
	count = java_frames_at(code->java, (uint32_t)words[1], frames);
	for (size_t i = 0; i < count; i++)
		ret[i] = frames[i].method ? java_frame(tables, &frames[i])
					  : cut_frame(tables, SCRIPT_HOTSPOT, SCRIPT_TOO_DEEP);
	return count;
}

static enum frame_kind compiled_kind(enum script_kind kind)
{
	if (kind == SCRIPT_LUA)
		return FRAME_LUA_RUNTIME;
	return kind == SCRIPT_PHP ? FRAME_PHP_RUNTIME : FRAME_RUBY_RUNTIME;
}

uint32_t script_compiled_frame(struct tables *tables, enum script_kind kind)
{
	struct frame frame = { .kind = compiled_kind(kind),
			       .mapping_file = tables_string(tables, slice_of("[anon]")),
			       .function = tables_string(tables, slice_of("[generated code]")) };

	return tables_frame(tables, &frame);
}

uint32_t script_code_frame(struct tables *tables, const struct runtimes *runtimes,
			   const struct process_identity *identity, uint64_t address)
{
	struct runtimes_code code;
	struct frame frame = { .kind = FRAME_DOTNET };

	if (!runtimes_find_code(runtimes, identity, address, &code))
		return SCRIPT_NO_FRAME;
	runtime_metrics_count(code.kind,
			      code.is_named ? RUNTIME_FRAME_NAMED : RUNTIME_FRAME_NOT_READ);
	if (code.kind == RUNTIME_BEAM)
		frame.kind = FRAME_BEAM;
	frame.mapping_file =
		tables_string(tables, slice_of(code.kind == RUNTIME_BEAM ? "[beam]" : "[dotnet]"));
	frame.function = text_intern(tables, slice_of(code.function));
	frame.file = text_intern(tables, slice_of(code.file));
	frame.line = code.line;
	return tables_frame(tables, &frame);
}

uint32_t script_unread_frame(struct tables *tables, enum script_kind kind)
{
	return cut_frame(tables, kind, SCRIPT_UNREADABLE);
}

uint32_t script_gap_frame(struct tables *tables, enum script_kind kind)
{
	return cut_frame(tables, kind, SCRIPT_UNSURE);
}

uint32_t script_problem_frame(struct tables *tables, const struct runtime_file *file)
{
	char text[PROBLEM_BYTES_MAX];

	runtime_metrics_count(file->layout.kind, RUNTIME_FRAME_UNKNOWN);
	snprintf(text, sizeof(text), "[%s%s%s: %s]", runtime_kind_name(file->layout.kind),
		 *file->version ? " " : "", file->version, file->problem);
	return marker(tables, text);
}

const struct runtime_file *script_runtime_of(const struct mapping *mapping)
{
	return mapping && mapping->binary ? mapping->binary->runtime : NULL;
}

enum frame_kind script_kind_of(const struct binary *binary)
{
	const struct runtime_file *file = binary ? binary->runtime : NULL;

	static const enum frame_kind kinds[RUNTIME_KINDS] = {
		[RUNTIME_PYTHON] = FRAME_PYTHON_RUNTIME, [RUNTIME_HOTSPOT] = FRAME_NATIVE,
		[RUNTIME_V8] = FRAME_V8_RUNTIME,	 [RUNTIME_RUBY] = FRAME_RUBY_RUNTIME,
		[RUNTIME_DOTNET] = FRAME_DOTNET_RUNTIME, [RUNTIME_PHP] = FRAME_PHP_RUNTIME,
		[RUNTIME_BEAM] = FRAME_BEAM_RUNTIME,	 [RUNTIME_PERL] = FRAME_PERL_RUNTIME,
		[RUNTIME_LUA] = FRAME_LUA_RUNTIME,	 [RUNTIME_PUC] = FRAME_LUA_RUNTIME,
		[RUNTIME_JSC] = FRAME_V8_RUNTIME,
	};

	return file && !file->problem ? kinds[file->layout.kind] : FRAME_NATIVE;
}

bool script_is_loop(const struct mapping *mapping, uint64_t address)
{
	const struct runtime_file *file = script_runtime_of(mapping);

	return file && runtime_file_is_loop(file, address - mapping->start + mapping->offset);
}

bool script_keeps_pointers(const struct space *space)
{
	for (uint32_t i = 0; space && i < space->count; i++) {
		const struct runtime_file *file = script_runtime_of(&space->mappings[i]);

		if (file && (file->layout.kind == RUNTIME_V8 ||
			     (file->layout.kind == RUNTIME_JSC && !file->problem)))
			return true;
	}
	return false;
}

const struct runtime_file *script_problem_of(const struct space *space)
{
	for (uint32_t i = 0; space && i < space->count; i++) {
		const struct runtime_file *file = script_runtime_of(&space->mappings[i]);

		if (file && file->problem &&
		    (runtime_has_native_frames(file->layout.kind) ||
		     file->layout.kind == RUNTIME_BEAM || file->layout.kind == RUNTIME_LUA))
			return file;
	}
	return NULL;
}

uint8_t script_native_of(const struct space *space, uint64_t address)
{
	const struct mapping *mapping = space_find(space, address);
	const struct runtime_file *file = script_runtime_of(mapping);

	if (mapping_is_generated(mapping))
		return SPLICE_GENERATED;
	return file && runtime_has_native_frames(file->layout.kind) ? SPLICE_RUNTIME
								    : SPLICE_FOREIGN;
}
