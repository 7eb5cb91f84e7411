/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: CPython's Include/internal/pycore_debug_offsets.h, pycore_frame.h, cpython/code.h,
 * cpython/pystate.h of the versions named; seen in the debug information of builds of 3.6 to 3.13.
 */
#include "agent/runtime/python/python_file.h"

#include <stdio.h>
#include <string.h>

#include "agent/runtime/python/python_state.h"

#define FRAME_BYTES_MAX 128u
#define FRAME_OWNED_BY_C 3 /* FRAME_OWNED_BY_CSTACK; from 3.14 also _BY_INTERPRETER, and 4 */
#define OFFSET_MAX 4096u

/* ---- by version ---- */

struct known_version {
	uint16_t version;
	struct python_places places;
	struct script_layout script;
	struct python_layout python;
};

#define TEXT_UP_TO_3_11 .text_count = 16, .text_state = 32, .text_ascii = 48, .text_wide = 72
#define TEXT_FROM_3_12 .text_count = 16, .text_state = 32, .text_ascii = 40, .text_wide = 56
#define OBJECTS .type = 8, .bytes_count = 16, .bytes_data = 32

#define FRAME_OBJECT(position_at, on_stack_at)                                                     \
	{                                                                                          \
		.on_stack = (on_stack_at), .first_frame = 24, .first_frame_hop = SCRIPT_NO_HOP,    \
		.frame_bytes = (position_at) + 8, .previous = 24, .object = 32,                    \
		.position = (position_at), .position_is_index = 1,                                 \
		.boundary_kind = SCRIPT_EACH_FRAME, .proof_words = 3                               \
	}
#define CODE_3_6                                                                                   \
	{                                                                                          \
		OBJECTS, TEXT_UP_TO_3_11, .file_name = 96, .name = 104,                            \
					  .qualified_name = PYTHON_NO_FIELD, .first_line = 36,     \
					  .lines = 112, .lines_form = PYTHON_LINES_LNOTAB          \
	}
#define CODE_3_8(form)                                                                             \
	{                                                                                          \
		OBJECTS, TEXT_UP_TO_3_11, .file_name = 104, .name = 112,                           \
					  .qualified_name = PYTHON_NO_FIELD, .first_line = 40,     \
					  .lines = 120, .lines_form = (form)                       \
	}

static const struct known_version known_versions[] = {
	{ PYTHON_VERSION(3, 6), { 0 }, FRAME_OBJECT(120, 0), CODE_3_6 },
	{ PYTHON_VERSION(3, 7), { 1504, 1480, 24 }, FRAME_OBJECT(104, 0), CODE_3_6 },
	{ PYTHON_VERSION(3, 8),
	  { 1392, 1368, 32 },
	  FRAME_OBJECT(104, 0),
	  CODE_3_8(PYTHON_LINES_LNOTAB) },
	{ PYTHON_VERSION(3, 9),
	  { 584, 568, 32 },
	  FRAME_OBJECT(104, 0),
	  CODE_3_8(PYTHON_LINES_LNOTAB) },
	{ PYTHON_VERSION(3, 10),
	  { 584, 568, 32 },
	  FRAME_OBJECT(96, 48),
	  CODE_3_8(PYTHON_LINES_RANGES) },
	{ PYTHON_VERSION(3, 11),
	  { 592, 576, 40 },
	  { .first_frame = 56,
	    .on_stack = 56,
	    .first_frame_hop = 8,
	    .frame_bytes = 72,
	    .previous = 48,
	    .object = 32,
	    .position = 56,
	    .boundary = 68,
	    .boundary_kind = SCRIPT_LAST_FRAME,
	    .object_start = 184,
	    .proof_words = 4 },
	  { OBJECTS, TEXT_UP_TO_3_11, .file_name = 112, .name = 120, .qualified_name = 128,
	    .first_line = 72, .lines = 136, .lines_form = PYTHON_LINES_LOCATIONS } },
	{ PYTHON_VERSION(3, 12),
	  { .key = 1544 },
	  { .first_frame = 56,
	    .first_frame_hop = 0,
	    .frame_bytes = 72,
	    .previous = 8,
	    .object = 0,
	    .position = 56,
	    .boundary = 70,
	    .boundary_kind = SCRIPT_MARK_FRAME,
	    .boundary_value = FRAME_OWNED_BY_C,
	    .object_start = 192,
	    .proof_words = 4 },
	  { OBJECTS, TEXT_FROM_3_12, .file_name = 112, .name = 120, .qualified_name = 128,
	    .first_line = 68, .lines = 136, .lines_form = PYTHON_LINES_LOCATIONS } },
};

static const struct known_version *find_version(uint16_t version)
{
	for (size_t i = 0; i < sizeof(known_versions) / sizeof(known_versions[0]); i++)
		if (known_versions[i].version == version)
			return &known_versions[i];
	return NULL;
}

/* ---- what version it is ---- */

/* Before 3.11 it is not written down: by the newest function that is exported. */
static uint16_t version_by_symbols(const struct elf_exports *symbols)
{
	static const struct {
		const char *symbol;
		uint16_t version;
	} news[] = {
		{ "PyFrame_GetBuiltins", PYTHON_VERSION(3, 11) },
		{ "PyIter_Send", PYTHON_VERSION(3, 10) },
		{ "PyModule_AddType", PYTHON_VERSION(3, 9) },
		{ "PyCode_NewWithPosOnlyArgs", PYTHON_VERSION(3, 8) },
		{ "PyContextVar_New", PYTHON_VERSION(3, 7) },
		{ "_PyEval_EvalFrameDefault", PYTHON_VERSION(3, 6) },
	};
	struct elf_export unused;

	for (size_t i = 0; i < sizeof(news) / sizeof(news[0]); i++)
		if (elf_exports_find(symbols, news[i].symbol, &unused))
			return news[i].version;
	return 0;
}

static uint16_t read_version(const struct elf_exports *symbols, struct runtime_file *ret)
{
	struct elf_export symbol;
	uint32_t hex = 0;
	uint16_t version;

	if (elf_exports_find(symbols, "Py_Version", &symbol) &&
	    elf_exports_read(symbols, symbol.address, &hex, sizeof(hex))) {
		snprintf(ret->version, sizeof(ret->version), "%u.%u.%u", hex >> 24, hex >> 16 & 255,
			 hex >> 8 & 255);
		return (uint16_t)(hex >> 16);
	}
	version = version_by_symbols(symbols);
	if (version)
		snprintf(ret->version, sizeof(ret->version), "%u.%u", (unsigned)version >> 8,
			 version & 255u);
	return version;
}

/* ---- the interpreter's own table ---- */

/*
 * _Py_DebugOffsets is a list of structures, each with its size and the offsets of some fields;
 * versions add fields and structures in between. What is looked for is known by what its offsets
 * are to one another.
 */
#define WORDS_MAX 128u
#define COOKIE "xdebugpy"
#define TYPE_BYTES_MIN 256u

struct words {
	uint64_t of[WORDS_MAX]; /* behind the cookie */
};

static bool read_words(const struct elf_exports *symbols, const struct elf_export *runtime,
		       struct words *ret)
{
	char cookie[sizeof(COOKIE) - 1];

	return elf_exports_read(symbols, runtime->address, cookie, sizeof(cookie)) &&
	       !memcmp(cookie, COOKIE, sizeof(cookie)) &&
	       elf_exports_read(symbols, runtime->address + sizeof(cookie), ret->of,
				sizeof(ret->of));
}

/* Of a thread's state: size, prev, next, interp, current_frame. */
static bool is_thread(const uint64_t *at)
{
	return at[0] > 128 && at[0] < OFFSET_MAX && at[1] == 0 && at[2] == 8 && at[3] == 16 &&
	       at[4] < at[0];
}

/* Of a frame: size, previous, executable, instr_ptr, localsplus, owner. */
static bool is_frame(const uint64_t *at)
{
	return at[0] > 48 && at[0] <= FRAME_BYTES_MAX && at[1] == 8 && at[2] == 0 && at[3] > 8 &&
	       at[3] < at[5] && at[5] < at[4] && at[4] <= at[0];
}

/* Of a code object: filename, name, qualname, linetable, firstlineno, argcount, and on. */
static bool is_code(const uint64_t *at)
{
	return at[0] > 16 && at[0] < OFFSET_MAX && at[1] == at[0] + 8 && at[2] == at[0] + 16 &&
	       at[3] == at[0] + 24 && at[4] < at[0] && at[5] < at[0] && at[8] > at[3] &&
	       at[8] < OFFSET_MAX;
}

/* Of any object: size, ob_type; then the size of a type. */
static bool is_object(const uint64_t *at)
{
	return at[0] <= 64 && at[1] < at[0] && at[2] > TYPE_BYTES_MIN && at[2] < OFFSET_MAX;
}

/* Of bytes: size, ob_size, ob_sval; and of text: size, state, length, asciiobject_size. */
static bool is_text(const uint64_t *at)
{
	return at[1] < at[2] && at[2] < at[0] && at[0] < OFFSET_MAX && at[3] < OFFSET_MAX &&
	       at[4] == at[5] + 16 && at[6] == at[4] + 8 && at[3] > at[6];
}

static const uint64_t *find_words(const struct words *words, size_t from,
				  bool (*is_it)(const uint64_t *at))
{
	for (size_t i = from; i + 9 <= WORDS_MAX; i++)
		if (is_it(&words->of[i]))
			return &words->of[i];
	return NULL;
}

static bool take_words(const struct words *words, struct runtime_file *ret)
{
	const uint64_t *thread = find_words(words, 0, is_thread);
	const uint64_t *frame = find_words(words, 0, is_frame);
	const uint64_t *code = find_words(words, 0, is_code);
	const uint64_t *object =
		code ? find_words(words, (size_t)(code - words->of), is_object) : NULL;
	const uint64_t *text =
		object ? find_words(words, (size_t)(object - words->of), is_text) : NULL;

	if (!thread || !frame || !text)
		return false;
	ret->script.layout = (struct script_layout){
		.first_frame = (uint16_t)thread[4],
		.first_frame_hop = SCRIPT_NO_HOP,
		.frame_bytes = (uint16_t)(frame[5] + 8) & 0xfff8u,
		.previous = (uint16_t)frame[1],
		.object = (uint16_t)frame[2],
		.position = (uint16_t)frame[3],
		.boundary = (uint16_t)frame[5],
		.boundary_kind = SCRIPT_MARK_FRAME,
		.boundary_value = FRAME_OWNED_BY_C,
		.object_start = (uint16_t)code[8],
		.proof_words = 4,
	};
	ret->layout.python = (struct python_layout){
		.type = (uint16_t)object[1],
		.file_name = (uint16_t)code[0],
		.name = (uint16_t)code[1],
		.qualified_name = (uint16_t)code[2],
		.first_line = (uint16_t)code[4],
		.lines = (uint16_t)code[3],
		.lines_form = PYTHON_LINES_LOCATIONS,
		.bytes_count = (uint16_t)text[1],
		.bytes_data = (uint16_t)text[2],
		.text_count = (uint16_t)text[5],
		.text_state = (uint16_t)text[4],
		.text_ascii = (uint16_t)text[6],
		.text_wide = (uint16_t)(text[6] + 16),
	};
	return true;
}

/* ---- all of it ---- */

static bool find_layout(const struct elf_exports *symbols, const struct elf_export *runtime,
			uint16_t version, struct runtime_file *ret)
{
	const struct known_version *known = find_version(version);
	struct words words;

	if (version >= PYTHON_VERSION(3, 13)) {
		if (!read_words(symbols, runtime, &words) || !take_words(&words, ret))
			return false;
		ret->source = "debug_offsets";
	} else if (known) {
		ret->script.layout = known->script;
		ret->layout.python = known->python;
		ret->source = "table";
	} else {
		return false;
	}
	ret->layout.python.version = version;
	ret->script.layout.proof = ret->layout.python.file_name;
	return true;
}

/* Before 3.6 the function had another name, which has been a small caller of it since. */
static bool add_loop(const struct elf_exports *symbols, struct runtime_file *ret)
{
	struct elf_export loop;

	return (elf_exports_find(symbols, "_PyEval_EvalFrameDefault", &loop) ||
		elf_exports_find(symbols, "PyEval_EvalFrameEx", &loop)) &&
	       runtime_file_add_loop(ret, symbols, &loop);
}

void python_file_read(const struct elf_exports *symbols, const struct elf_export *runtime,
		      struct runtime_file *ret)
{
	uint16_t version = read_version(symbols, ret);
	const struct known_version *known = find_version(version);
	struct python_state state;
	struct elf_export code_type;

	ret->script.kind = SCRIPT_PYTHON;
	if (!add_loop(symbols, ret))
		ret->problem = "no evaluation loop";
	else if (!find_layout(symbols, runtime, version, ret))
		ret->problem = "unknown layout";
	else if (!elf_exports_find(symbols, "PyCode_Type", &code_type))
		ret->problem = "no type of code";
	else if (!python_state_find(symbols, runtime, version, known ? &known->places : NULL,
				    &state))
		ret->problem = "thread state not found";
	if (ret->problem)
		return;
	ret->layout.python.code_type = code_type.address;
	ret->script.state_form = (uint16_t)state.named.form;
	ret->script.state_at = state.named.at;
	ret->script.key_form = (uint16_t)state.detached.form;
	ret->script.key_at = state.detached.at;
	ret->script.current_at = state.current;
	ret->script.interpreters_at = state.interpreters;
}
