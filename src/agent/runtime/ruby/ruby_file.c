/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: Ruby's vm_core.h, iseq.c, internal/class.h, symbol.c of the versions named.
 */
#include "agent/runtime/ruby/ruby_file.h"

#include <stdio.h>
#include <string.h>

#include "agent/runtime/function_parts.h"
#include "agent/runtime/thread_variable.h"

#define EVALUATING_CODE_BYTES 512u
#define COMMON_JUMPS_MAX 16 /* of two functions to one place, that are looked up */
#define SYMBOLS_CODE_BYTES 128u
#define CONTEXT_OF_THREAD 32u /* in a Thread of 2.7 */
#define SYMBOLS_TEXTS_AT 8u   /* in the table of ids: what rb_sym_all_symbols reads */

struct known_version {
	uint16_t version;
	uint16_t frame_bytes;
	struct ruby_layout layout;
};

#define BODY_UP_TO_3_1 .lines = 120, .lines_count = 136, .lines_index = 144
#define BODY_FROM_3_2 .lines = 112, .lines_count = 128, .lines_index = 136
#define NAMED_CLASS .class_form = RUBY_CLASS_FIELD, .attached = 32 + 96, .class_path = 32 + 120

static const struct known_version known_versions[] = {
	{ RUBY_VERSION(2, 7),
	  56,
	  { BODY_UP_TO_3_1, .line_bytes = 8, .body_bytes = 312, .text = 16, .short_array_bits = 2,
	    .class_form = RUBY_CLASS_VARIABLES, .singleton = 1 << 12, .last_operator = 168 } },
	{ RUBY_VERSION(3, 0),
	  56,
	  { BODY_UP_TO_3_1, .line_bytes = 8, .body_bytes = 312, .text = 16, .short_array_bits = 2,
	    .class_form = RUBY_CLASS_VARIABLES, .singleton = 1 << 12, .last_operator = 168 } },
	{ RUBY_VERSION(3, 1),
	  64,
	  { BODY_UP_TO_3_1, .line_bytes = 12, .body_bytes = 312, .text = 16, .short_array_bits = 2,
	    .class_form = RUBY_CLASS_VARIABLES, .singleton = 1 << 12, .last_operator = 169 } },
	{ RUBY_VERSION(3, 2),
	  64,
	  { BODY_FROM_3_2, .line_bytes = 12, .body_bytes = 320, .text = 24, .short_array_bits = 7,
	    .class_form = RUBY_CLASS_UNKNOWN, .last_operator = 169 } },
	{ RUBY_VERSION(3, 3),
	  56,
	  { BODY_FROM_3_2, .line_bytes = 12, .body_bytes = 344, .text = 24, .short_array_bits = 7,
	    NAMED_CLASS, .singleton = 1 << 12, .last_operator = 169 } },
	{ RUBY_VERSION(3, 4),
	  56,
	  { BODY_FROM_3_2, .line_bytes = 12, .body_bytes = 352, .text = 24, .short_array_bits = 7,
	    NAMED_CLASS, .singleton = 1 << 13, .last_operator = 170 } },
};

static const struct known_version *find_version(uint16_t version)
{
	for (size_t i = 0; i < sizeof(known_versions) / sizeof(known_versions[0]); i++)
		if (known_versions[i].version == version)
			return &known_versions[i];
	return NULL;
}

static uint16_t read_version(const struct elf_exports *symbols, struct runtime_file *ret)
{
	char text[RUNTIME_VERSION_BYTES] = "";
	unsigned major, minor, patch;
	struct elf_export symbol;
	size_t len;

	if (!elf_exports_find(symbols, "ruby_version", &symbol))
		return 0;
	len = symbol.bytes && symbol.bytes < sizeof(text) ? symbol.bytes : sizeof("3.1.7");
	if (!elf_exports_read(symbols, symbol.address, text, len) ||
	    sscanf(text, "%2u.%2u.%2u", &major, &minor, &patch) != 3)
		return 0;
	snprintf(ret->version, sizeof(ret->version), "%u.%u.%u", major, minor, patch);
	return (uint16_t)RUBY_VERSION(major, minor);
}

/* A load of a 64-bit register from an address relative to the instruction's end. */
static bool is_load(const uint8_t *code)
{
	return (code[0] & 0xf8) == 0x48 && code[1] == 0x8b && (code[2] & 0xc7) == 0x05;
}

/* The address that the function loads twice: once for its size, and to go through it. */
static uint64_t loaded_twice(const uint8_t *code, uint64_t address, size_t len)
{
	uint64_t seen[16];
	size_t count = 0;

	for (size_t i = 0; i + 7 <= len && count < sizeof(seen) / sizeof(seen[0]); i++) {
		int32_t operand;

		if (!is_load(code + i))
			continue;
		memcpy(&operand, code + i + 3, sizeof(operand));
		seen[count] = address + i + 7 + (uint64_t)(int64_t)operand;
		for (size_t j = 0; j < count; j++)
			if (seen[j] == seen[count])
				return seen[j];
		count++;
	}
	return 0;
}

/* The table of ids, which few builds export. */
static uint64_t find_symbols(const struct elf_exports *symbols)
{
	uint8_t code[SYMBOLS_CODE_BYTES];
	struct elf_export found;
	uint64_t texts;

	if (elf_exports_find(symbols, "ruby_global_symbols", &found) ||
	    elf_exports_find_local(symbols, "ruby_global_symbols", &found, 1))
		return found.address;
	if (!elf_exports_find(symbols, "rb_sym_all_symbols", &found) ||
	    !elf_exports_read(symbols, found.address, code, sizeof(code)))
		return 0;
	texts = loaded_twice(code, found.address, sizeof(code));
	return texts ? texts - SYMBOLS_TEXTS_AT : 0;
}

/* The binary's code, which enters what the compiler made. */
static void set_code(const struct elf_exports *symbols, uint64_t address,
		     struct script_ruby_layout *ret)
{
	const struct elf_info *info = symbols->info;

	for (size_t i = 0; i < info->segments_count; i++) {
		const struct elf_segment *segment = &info->segments[i];

		if (!segment->executable || address - segment->address >= segment->file_bytes ||
		    segment->file_bytes > UINT32_MAX)
			continue;
		ret->code_start = segment->address;
		ret->code_bytes = (uint32_t)segment->file_bytes;
	}
}

struct evaluating {
	uint8_t code[EVALUATING_CODE_BYTES];
	struct elf_export function;
};

static bool read_evaluating(const struct elf_exports *symbols, const char *name,
			    struct evaluating *ret)
{
	return elf_exports_find(symbols, name, &ret->function) &&
	       ret->function.bytes <= sizeof(ret->code) &&
	       elf_exports_read(symbols, ret->function.address, ret->code, ret->function.bytes);
}

/* The next jump out of the function, from *at on; what looks like one in the middle of an
 * instruction, too. */
static bool next_jump(const struct evaluating *evaluating, uint64_t *at, uint64_t *ret)
{
	const struct elf_export *function = &evaluating->function;

	for (uint64_t i = *at; i + 5 <= function->bytes; i++) {
		int32_t distance;

		memcpy(&distance, evaluating->code + i + 1, sizeof(distance));
		*ret = function->address + i + 5 + (uint64_t)(int64_t)distance;
		*at = i + 1;
		if (evaluating->code[i] == 0xe9 && *ret - function->address >= function->bytes)
			return true;
	}
	return false;
}

/* Builds that do not export it have two functions that do, and end in a jump to it. */
static bool find_loop(const struct elf_exports *symbols, struct elf_export *ret)
{
	struct evaluating program, file;
	uint64_t one, other;
	int common = 0;

	if (elf_exports_find(symbols, "rb_vm_exec", ret))
		return true;
	if (!read_evaluating(symbols, "rb_iseq_eval_main", &program) ||
	    !read_evaluating(symbols, "rb_iseq_eval", &file))
		return false;
	for (uint64_t at = 0; next_jump(&program, &at, &one);)
		for (uint64_t behind = 0; next_jump(&file, &behind, &other);) {
			if (one != other)
				continue;
			if (function_extent_find(symbols, one, ret))
				return true;
			if (++common == COMMON_JUMPS_MAX)
				return false;
		}
	return false;
}

/*
 * Before Ractors the execution context of the thread that may run Ruby was a global; but each
 * thread has the key of its own Thread.
 */
static bool find_thread_key(const struct elf_exports *symbols, struct runtime_file *ret)
{
	static const struct code_pattern load_di = { { 0x8b, 0x3d }, 2, true };
	struct function_code function;
	uint64_t key;
	size_t at = 0;

	if (!function_code_read(symbols, "ruby_thread_has_gvl_p", &function) ||
	    !function_code_next(&function, &load_di, &at, &key))
		return false;
	ret->script.state_form = SCRIPT_STATE_KEY_NUMBER;
	ret->script.state_at = key;
	ret->script.ruby.context = CONTEXT_OF_THREAD;
	return true;
}

static bool find_state(const struct elf_exports *symbols, uint16_t version,
		       struct runtime_file *ret)
{
	static const char *const readers[] = { "rb_current_ec_noinline", "rb_thread_current" };
	struct thread_variable state;

	if (version < RUBY_VERSION(3, 0))
		return find_thread_key(symbols, ret);
	if (!thread_variable_find(symbols, readers, 2, &state))
		return false;
	ret->script.state_form = (uint16_t)state.form;
	ret->script.state_at = state.at;
	return true;
}

void ruby_file_read(const struct elf_exports *symbols, const struct elf_export *mark,
		    struct runtime_file *ret)
{
	const struct known_version *known = find_version(read_version(symbols, ret));
	struct elf_export loop;

	(void)mark;
	ret->script.kind = SCRIPT_RUBY;
	if (!find_loop(symbols, &loop) || !runtime_file_add_loop(ret, symbols, &loop))
		ret->problem = "no evaluation loop";
	else if (!known)
		ret->problem = "unknown layout";
	else if (!find_state(symbols, known->version, ret))
		ret->problem = "thread state not found";
	if (ret->problem)
		return;
	ret->source = "table";
	ret->layout.ruby = known->layout;
	ret->layout.ruby.version = known->version;
	ret->layout.ruby.symbols = find_symbols(symbols);
	ret->script.ruby.frame_bytes = known->frame_bytes;
	set_code(symbols, loop.address, &ret->script.ruby);
}
