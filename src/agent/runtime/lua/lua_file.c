/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: LuaJIT's lj_obj.h, lj_frame.h, vm_x64.dasc.
 */
#include "agent/runtime/lua/lua_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/large_functions.h"
#include "base/mem.h"

#define ACCESSOR_BYTES 16u
#define INTERPRETER_MIN 8192u
#define INTERPRETER_MAX 131072u
#define FRAME_BYTES 80 /* of the interpreter */
#define SHARED_MAX 65536
#define BASE_BEHIND_HANDLER 24 /* from the handler of errors to the base of the trace that runs */

static const struct {
	const char *symbol, *version;
} versions[] = {
	{ "luaJIT_version_2_1_0_beta3", "2.1.0-beta3" },
	{ "luaJIT_version_2_1_0_beta2", "2.1.0-beta2" },
	{ "luaJIT_version_2_1_0_beta1", "2.1.0-beta1" },
	{ "luaJIT_version_2_1_ROLLING", "2.1" },
	{ "lua_setexdata2", "2.1-openresty" },
	{ "luaJIT_version_2_0_5", "2.0.5" },
	{ "luaJIT_version_2_0_4", "2.0.4" },
	{ "luaJIT_version_2_0_ROLLING", "2.0" },
};

/* ---- the interpreter ---- */

/* What the rows of a function say. */
struct rows {
	uint64_t start;
	size_t count;
	bool has_frame; /* of the interpreter, from its first instruction on */
};

static int note_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct rows *rows = context;

	rows->count++;
	rows->has_frame = address == rows->start && rule->cfa == UNWIND_CFA_REGISTER &&
			  rule->cfa_register == UNWIND_X86_SP && rule->cfa_offset == FRAME_BYTES &&
			  rule->fp == UNWIND_VALUE_AT_CFA && rule->fp_offset == -16;
	return 0;
}

/* Its frame is the interpreter's from its first instruction to its last. */
static bool is_interpreter(void *context, struct cfi *cfi, const struct large_function *function)
{
	struct rows rows = { .start = function->start };
	struct unwind_row_sink sink = { note_row, &rows };
	struct err err;

	(void)context;
	return cfi_rows(cfi, function->cookie, &sink, &err) >= 0 && rows.count == 1 &&
	       rows.has_frame;
}

static bool find_interpreter(const struct elf_exports *symbols, struct large_function *ret)
{
	static const struct large_function_query query = { "LuaJIT", INTERPRETER_MIN,
							   INTERPRETER_MAX, is_interpreter, NULL };

	return large_functions_find(symbols, &query, ret);
}

/* ---- places in structures ---- */

static int32_t number_at(const uint8_t *code)
{
	int32_t number;

	memcpy(&number, code, sizeof(number));
	return number;
}

/* The code of an exported function, behind a landing pad if it has one. */
static bool read_accessor(const struct elf_exports *symbols, const char *name,
			  uint8_t code[ACCESSOR_BYTES])
{
	static const uint8_t landing_pad[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	struct elf_export symbol;

	if (!elf_exports_find(symbols, name, &symbol) ||
	    !elf_exports_read(symbols, symbol.address, code, ACCESSOR_BYTES))
		return false;
	return memcmp(code, landing_pad, sizeof(landing_pad)) != 0 ||
	       elf_exports_read(symbols, symbol.address + sizeof(landing_pad), code,
				ACCESSOR_BYTES);
}

/* mov at(%rdi),%rax, 64 bits wide */
static bool is_load(const uint8_t *code, uint8_t *ret)
{
	*ret = code[3];
	return code[0] == 0x48 && code[1] == 0x8b && code[2] == 0x47 && code[3] < 128 &&
	       !(code[3] & 7);
}

/* Of a thread; `ret_handler` is where the handler of errors is in what threads share. */
static bool find_places(const struct elf_exports *symbols, struct script_lua_layout *ret,
			int32_t *ret_handler)
{
	uint8_t code[ACCESSOR_BYTES], top;

	/* The number of values: from the base to the top. */
	if (!read_accessor(symbols, "lua_gettop", code) || !is_load(code, &top) ||
	    code[4] != 0x48 || code[5] != 0x2b || code[6] != 0x47 || code[7] + 8 != top)
		return false;
	ret->base = code[7];
	/* A flag of its innermost C frame. */
	if (!read_accessor(symbols, "lua_isyieldable", code) || !is_load(code, &ret->frame))
		return false;
	/* Exchanges the handler of errors. */
	if (!read_accessor(symbols, "lua_atpanic", code) || !is_load(code, &ret->shared) ||
	    code[4] != 0x48 || code[5] != 0x8b || (code[6] & 0xc7) != 0x80)
		return false;
	*ret_handler = number_at(code + 7);
	return *ret_handler > 0 && *ret_handler < SHARED_MAX;
}

/*
 * How a loop enters its trace: from the pointer to traces (r14 is that to what threads share, at a
 * distance) to the trace, to its code; and the base that it is entered with is kept.
 *
 *   49 8b 8e traces       mov traces(%r14),%rcx
 *   48 8b 04 c1           mov (%rcx,%rax,8),%rax
 *   48 8b 40 code         mov code(%rax),%rax
 *   48 8b 6c 24 10        mov 0x10(%rsp),%rbp
 *   49 89 96 trace_base   mov %rdx,trace_base(%r14)
 */
#define ENTRY_BYTES 27u

static bool is_entry(const uint8_t *code)
{
	static const uint8_t loads[] = { 0x48, 0x8b, 0x04, 0xc1, 0x48, 0x8b, 0x40 };
	static const uint8_t thread[] = { 0x48, 0x8b, 0x6c, 0x24, 0x10, 0x49, 0x89, 0x96 };

	return code[0] == 0x49 && code[1] == 0x8b && code[2] == 0x8e &&
	       !memcmp(code + 7, loads, sizeof(loads)) &&
	       !memcmp(code + 15, thread, sizeof(thread));
}

/* An exit takes the number of its trace and says that it is none any more: mov at(%r14),%ecx, movl
 * $imm,at(%r14). */
static bool is_exit(const uint8_t *code)
{
	return code[0] == 0x41 && code[1] == 0x8b && code[2] == 0x8e && code[7] == 0x41 &&
	       code[8] == 0xc7 && code[9] == 0x86 && !memcmp(code + 3, code + 10, 4);
}

static bool find_traces(const uint8_t *code, size_t len, int32_t handler,
			struct script_lua_layout *ret)
{
	int64_t base = (int64_t)handler + BASE_BEHIND_HANDLER, state = 0, traces = 0, at_base = 0;
	bool has_state = false, has_traces = false;

	for (size_t i = 0; i + ENTRY_BYTES <= len; i++) {
		if (!has_traces && is_entry(code + i)) {
			traces = number_at(code + i + 3);
			at_base = number_at(code + i + 23);
			ret->code = code[i + 14];
			has_traces = true;
		}
		if (!has_state && is_exit(code + i)) {
			state = number_at(code + i + 3);
			has_state = true;
		}
	}
	state += base - at_base;
	traces += base - at_base;
	if (!has_traces || !has_state || state <= 0 || state >= SHARED_MAX || traces <= 0 ||
	    traces >= SHARED_MAX || ret->code < 32 || ret->code > 127 || ret->code & 7)
		return false;
	ret->trace_base = (uint16_t)base;
	ret->state = (uint16_t)state;
	ret->traces = (uint16_t)traces;
	return true;
}

static void read_version(const struct elf_exports *symbols, struct runtime_file *ret)
{
	struct elf_export symbol;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (elf_exports_find(symbols, versions[i].symbol, &symbol)) {
			snprintf(ret->version, sizeof(ret->version), "%s", versions[i].version);
			return;
		}
}

void lua_file_read(const struct elf_exports *symbols, const struct elf_export *mark,
		   struct runtime_file *ret)
{
	struct script_lua_layout *layout = &ret->script.lua;
	struct large_function interpreter = { 0 };
	uint8_t *code;
	int32_t handler;
	uint64_t offset;
	size_t len;

	(void)mark;
	ret->script.kind = SCRIPT_LUA;
	ret->script.state_form = SCRIPT_STATE_GLOBAL;
	ret->problem = "unknown layout";
	read_version(symbols, ret);
	if (!find_interpreter(symbols, &interpreter) ||
	    !elf_address_to_offset(symbols->info, interpreter.start, &offset))
		return;
	len = (size_t)(interpreter.end - interpreter.start);
	ret->loops[ret->loops_count++] = (struct runtime_range){ offset, offset + len };
	code = mem_calloc(1, len);
	if (find_places(symbols, layout, &handler) &&
	    elf_exports_read(symbols, interpreter.start, code, len) &&
	    find_traces(code, len, handler, layout)) {
		layout->code_start = interpreter.start;
		layout->code_bytes = (uint32_t)len;
		ret->layout.lua.code = layout->code;
		ret->source = "code";
		ret->problem = NULL;
	}
	free(code);
}
