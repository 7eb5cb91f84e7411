/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: see jsc_file.c; also JavaScriptCore's bytecode/CodeOrigin.h, InlineCallFrame.h,
 * dfg/DFGCodeOriginPool.h.
 */
#include "agent/runtime/jsc/jsc_code.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/jsc/jsc_text.h"
#include "base/mem.h"

#define CODE_WORDS 16u
#define INTERPRETER_BYTES_MAX (4u << 20)
#define ANONYMOUS "(anonymous)"

/* A call site: where it is in the bytecode, and the inlined call that it is in. */
#define ORIGIN_ADDRESS(word) ((word)&0xfffffffffff8ull)
#define ORIGIN_IS_APART 1u /* the address is that of both, the call first */
#define ORIGIN_IS_NONE 2u

#define POOL_SITES 8  /* {address, room, count} */
#define CALL_BYTES 24 /* of what describes an inlined call: arguments, CodeBlock, call site */

struct source {
	const struct memory_reader *memory;
	const struct jsc_layout *layout;
};

static bool read_word(const struct source *source, uint64_t address, uint64_t *ret)
{
	return memory_read(source->memory, address, ret, sizeof(*ret));
}

static uint8_t kind_of(uint64_t head)
{
	return (uint8_t)(head >> 40);
}

static char *copy_text(const char *text)
{
	return mem_strndup(text, strlen(text));
}

/* ---- functions ---- */

static char *read_name(const struct source *source, uint64_t executable)
{
	uint64_t unlinked, head, name;
	char *text;

	if (!read_word(source, executable + source->layout->unlinked, &unlinked) ||
	    !read_word(source, unlinked, &head) || kind_of(head) != source->layout->unlinked_kind ||
	    !read_word(source, unlinked + source->layout->name, &name))
		return NULL;
	text = jsc_text_read(source->memory, name);
	if (text && !*text) {
		free(text);
		return copy_text(ANONYMOUS);
	}
	return text;
}

static char *name_of(const struct source *source, uint64_t executable, uint8_t kind)
{
	const struct jsc_layout *layout = source->layout;

	if (kind == layout->function_kind)
		return read_name(source, executable);
	if (kind == layout->script_kind)
		return copy_text("(script)");
	if (kind == layout->module_kind)
		return copy_text("(module)");
	return kind == layout->eval_kind ? copy_text("(eval)") : NULL;
}

/* "" for JavaScriptCore's own functions, which are in no file. */
static char *read_file(const struct source *source, uint64_t executable)
{
	uint64_t provider, url;

	if (!read_word(source, executable + source->layout->source, &provider))
		return NULL;
	if (!provider)
		return copy_text("");
	if (!read_word(source, provider + source->layout->url, &url))
		return NULL;
	return jsc_text_read(source->memory, url);
}

/* The name and the file of an executable. False when there is none, or it has gone. */
static bool read_function(const struct source *source, uint64_t executable, char **ret_function,
			  char **ret_file)
{
	char *function, *file;
	uint64_t head;

	if (!read_word(source, executable, &head))
		return false;
	function = name_of(source, executable, kind_of(head));
	if (!function)
		return false;
	file = read_file(source, executable);
	if (!file) {
		free(function);
		return false;
	}
	*ret_function = function;
	*ret_file = file;
	return true;
}

/* ---- inlined calls ---- */

/* The address of the inlined call of a call site; 0 = the compiled function's own. */
static bool read_origin(const struct source *source, uint64_t origin, uint64_t *ret)
{
	*ret = ORIGIN_ADDRESS(origin);
	if (origin & ORIGIN_IS_NONE)
		return false;
	return !(origin & ORIGIN_IS_APART) || read_word(source, *ret, ret);
}

static uint16_t find_call(const struct jsc_code *code, uint64_t address)
{
	for (size_t i = 0; i < code->calls_count; i++)
		if (code->calls[i].address == address)
			return (uint16_t)i;
	return JSC_UNKNOWN_CALL;
}

/* Its function, of which `block` is a CodeBlock. */
static bool read_callee(const struct source *source, uint64_t block, struct jsc_call *ret)
{
	uint64_t head, owner;

	return read_word(source, block, &head) && kind_of(head) == source->layout->code_kind &&
	       read_word(source, block + source->layout->owner, &owner) &&
	       read_function(source, owner, &ret->function, &ret->file);
}

/* The call is inlined into `outer`, which is known. */
static uint16_t add_call(struct jsc_code *code, const struct source *source, uint64_t address,
			 uint64_t block, uint16_t outer)
{
	struct jsc_call call = { .address = address, .outer = outer, .depth = 1 };

	if (outer != JSC_NO_CALL)
		call.depth = code->calls[outer].depth + 1;
	if (code->calls_count == JSC_CALLS_MAX || call.depth > JSC_INLINED_MAX ||
	    !read_callee(source, block, &call))
		return JSC_UNKNOWN_CALL;
	mem_grow(code->calls, code->calls_count, code->calls_capacity);
	code->calls[code->calls_count] = call;
	return (uint16_t)code->calls_count++;
}

/* The innermost inlined call of a call site, with those outside of it. */
static uint16_t read_call(struct jsc_code *code, const struct source *source, uint64_t origin)
{
	uint64_t addresses[JSC_INLINED_MAX], blocks[JSC_INLINED_MAX];
	uint16_t outer = JSC_NO_CALL;
	size_t count = 0;
	uint64_t address;

	for (;;) {
		uint64_t words[CALL_BYTES / 8];

		if (!read_origin(source, origin, &address))
			return JSC_UNKNOWN_CALL;
		if (!address)
			break;
		outer = find_call(code, address);
		if (outer != JSC_UNKNOWN_CALL)
			break;
		if (count == JSC_INLINED_MAX ||
		    !memory_read(source->memory, address, words, sizeof(words)))
			return JSC_UNKNOWN_CALL;
		addresses[count] = address;
		blocks[count++] = words[1];
		origin = words[2];
		outer = JSC_NO_CALL;
	}
	while (count-- > 0 && outer != JSC_UNKNOWN_CALL)
		outer = add_call(code, source, addresses[count], blocks[count], outer);
	return outer;
}

static void read_sites(struct jsc_code *code, const struct source *source, uint64_t at,
		       size_t count)
{
	uint64_t *origins = mem_new_array(uint64_t, count);

	if (memory_read(source->memory, at, origins, count * sizeof(*origins))) {
		code->sites = mem_new_array(uint16_t, count);
		code->sites_count = count;
		for (size_t i = 0; i < count; i++)
			code->sites[i] = read_call(code, source, origins[i]);
	}
	free(origins);
}

/* What is inlined into machine code. */
static void read_inlined(struct jsc_code *code, const struct source *source, uint64_t jit)
{
	const struct jsc_layout *layout = source->layout;
	uint64_t calls[2] = { 1, 0 }, sites[2], head;
	uint32_t count;

	if (!jit || !read_word(source, jit + (layout->tier & ~7u), &head))
		return;
	code->tier = (uint8_t)(head >> 8 * (layout->tier & 7));
	if (code->tier != JSC_TIER_DFG && code->tier != JSC_TIER_FTL)
		return;
	jit += code->tier == JSC_TIER_DFG ? layout->dfg_calls : layout->ftl_calls;
	code->has_inlined =
		!memory_read(source->memory, jit, calls, sizeof(calls)) || calls[0] != 0;
	if (!code->has_inlined ||
	    !memory_read(source->memory, calls[1] + POOL_SITES, sites, sizeof(sites)))
		return;
	count = (uint32_t)(sites[1] >> 32);
	read_sites(code, source, sites[0], count < JSC_SITES_MAX ? count : JSC_SITES_MAX);
}

/* ---- the interpreter ---- */

static bool read_interpreter(const struct source *source, uint64_t bias, struct jsc_code *ret)
{
	uint64_t opcodes[JSC_OPCODES_MAX], start = UINT64_MAX, end = 0;
	size_t count = source->layout->opcodes_count;

	if (count > JSC_OPCODES_MAX || !memory_read(source->memory, source->layout->opcodes + bias,
						    opcodes, count * sizeof(opcodes[0])))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!opcodes[i])
			continue;
		start = opcodes[i] < start ? opcodes[i] : start;
		end = opcodes[i] > end ? opcodes[i] : end;
	}
	if (!end || end - start > INTERPRETER_BYTES_MAX)
		return false;
	ret->interpreter_start = start;
	ret->interpreter_end = end;
	return true;
}

static struct jsc_code *read_code(const struct source *source, uint64_t bias, uint64_t jit)
{
	struct jsc_code *code = mem_new(struct jsc_code);

	if (!read_interpreter(source, bias, code)) {
		free(code);
		return NULL;
	}
	read_inlined(code, source, jit);
	return code;
}

/* ---- all of it ---- */

enum script_code_result jsc_code_read(const struct memory_reader *memory,
				      const struct jsc_layout *layout, uint64_t bias,
				      uint64_t address, struct script_code *ret)
{
	const struct source source = { memory, layout };
	uint64_t words[CODE_WORDS], proof[SCRIPT_PROOF_WORDS];
	size_t owner = layout->owner / 8u, jit = layout->jit / 8u;

	*ret = (struct script_code){ 0 };
	if (owner < 1 || owner + 1 >= CODE_WORDS || jit >= CODE_WORDS)
		return SCRIPT_CODE_OTHER;
	if (!memory_read(memory, address, words, sizeof(words)))
		return SCRIPT_CODE_GONE;
	if (kind_of(words[0]) != layout->code_kind)
		return SCRIPT_CODE_OTHER;
	proof[0] = words[owner - 1];
	proof[1] = words[owner];
	proof[2] = words[owner + 1];
	proof[3] = words[jit];
	ret->proof = script_proof((const __u64 *)proof);
	ret->jsc = read_code(&source, bias, words[jit]);
	if (!ret->jsc)
		return SCRIPT_CODE_GONE;
	if (!read_function(&source, words[owner], &ret->function, &ret->file)) {
		jsc_code_free(ret->jsc);
		ret->jsc = NULL;
		return SCRIPT_CODE_GONE;
	}
	ret->name = copy_text(ret->function);
	return SCRIPT_CODE_READ;
}

void jsc_code_free(struct jsc_code *code)
{
	if (!code)
		return;
	for (size_t i = 0; i < code->calls_count; i++) {
		free(code->calls[i].function);
		free(code->calls[i].file);
	}
	free(code->calls);
	free(code->sites);
	free(code);
}

size_t jsc_code_bytes(const struct jsc_code *code)
{
	size_t bytes = sizeof(*code) + code->sites_count * sizeof(*code->sites) +
		       code->calls_capacity * sizeof(*code->calls);

	for (size_t i = 0; i < code->calls_count; i++)
		bytes += strlen(code->calls[i].function) + strlen(code->calls[i].file) + 2;
	return bytes;
}

bool jsc_code_calls(const struct jsc_code *code, uint32_t site,
		    const struct jsc_call *ret[JSC_INLINED_MAX], size_t *ret_count)
{
	uint16_t call;

	if (site >= code->sites_count || code->sites[site] == JSC_UNKNOWN_CALL)
		return false;
	call = code->sites[site];
	*ret_count = call == JSC_NO_CALL ? 0 : code->calls[call].depth;
	for (size_t i = *ret_count; i-- > 0; call = code->calls[call].outer)
		ret[i] = &code->calls[call];
	return true;
}
