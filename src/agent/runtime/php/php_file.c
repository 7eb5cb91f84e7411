/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: PHP's Zend/zend_compile.h, zend_globals.h of the versions named.
 */
#include "agent/runtime/php/php_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/text_search.h"

#define TEXT_BYTES 64u /* longer than what is sought */
#define SCOPE_CODE_BYTES 48u
#define PROLOGUE_BYTES 32u
#define TIME_CODE_BYTES 64u

/*
 * From 8.2 on, copies of functions and calls of them are seen to be flagged as bpf/script_php.h
 * says. In 7.4 other flags say it, and the copy that Closure::call makes has none.
 */
#define FLAGS_KNOWN_SINCE 2022u

#define VM_IS_HYBRID 4u /* zend_vm_kind: frame and position are in registers */

struct known_version {
	uint32_t interface; /* year of it: API20220829 */
	uint16_t major, minor;
	uint16_t frame;	   /* in the executor globals; only if its code does not say */
	uint8_t generator; /* of script_php_layout */
	struct php_layout layout;
};

static const struct known_version known_versions[] = {
	{ 2019, 7, 4, 488, 0x58, { 60, 64, 136 } },  { 2020, 8, 0, 488, 0x47, { 68, 72, 144 } },
	{ 2021, 8, 1, 488, 0x47, { 68, 72, 144 } },  { 2022, 8, 2, 488, 0x47, { 80, 88, 152 } },
	{ 2023, 8, 3, 488, 0x47, { 76, 80, 144 } },  { 2024, 8, 4, 488, 0x47, { 96, 104, 168 } },
	{ 2025, 8, 5, 512, 0x47, { 96, 104, 168 } },
};

/* Text in the binary: "API20220829,NTS", "Zend Engine v4.2.36, Copyright". */
struct texts {
	char interface[TEXT_BYTES], engine[TEXT_BYTES];
};

static void take_text(const char *block, size_t len, const char *mark, char *ret)
{
	const char *found = *ret ? NULL : memmem(block, len, mark, strlen(mark));
	size_t left = found ? (size_t)(block + len - found) : 0;

	if (found)
		snprintf(ret, TEXT_BYTES, "%.*s", (int)(left < 40 ? left : 40), found);
}

/* True if both are there. */
static bool take_texts(void *context, const char *block, size_t len, size_t own)
{
	struct texts *texts = context;

	(void)own;
	take_text(block, len, "API20", texts->interface);
	take_text(block, len, "Zend Engine v", texts->engine);
	return *texts->interface && *texts->engine;
}

static void read_texts(const struct elf_exports *symbols, const struct elf_segment *segment,
		       struct texts *ret)
{
	uint64_t bytes = segment->file_bytes;

	if (*ret->interface && *ret->engine)
		return;
	if (bytes > PHP_TEXT_BYTES_MAX)
		bytes = PHP_TEXT_BYTES_MAX;
	text_search(symbols->fd, segment->offset, bytes, take_texts, ret);
}

/* Sets ret->version, or ret->problem. */
static const struct known_version *read_version(const struct elf_exports *symbols,
						struct runtime_file *ret)
{
	const struct known_version *known = NULL;
	struct texts texts = { 0 };
	unsigned date = 0, engine, minor, patch;
	char threads[4] = "";

	for (size_t i = 0; i < symbols->info->segments_count; i++)
		read_texts(symbols, &symbols->info->segments[i], &texts);
	if (sscanf(texts.interface, "API%8u,%3[NTS]", &date, threads) == 2)
		for (size_t i = 0; i < sizeof(known_versions) / sizeof(known_versions[0]); i++)
			if (known_versions[i].interface == date / 10000)
				known = &known_versions[i];
	if (sscanf(texts.engine, "Zend Engine v%2u.%2u.%3u", &engine, &minor, &patch) == 3 &&
	    engine == 4)
		snprintf(ret->version, sizeof(ret->version), "8.%u.%u", minor, patch);
	else if (known)
		snprintf(ret->version, sizeof(ret->version), "%u.%u", known->major, known->minor);
	if (!known)
		ret->problem = "unknown layout";
	else if (strcmp(threads, "NTS") != 0)
		ret->problem = "thread-safe build";
	return known;
}

static int32_t operand_at(const uint8_t *code)
{
	int32_t operand;

	memcpy(&operand, code, sizeof(operand));
	return operand;
}

/* A load of a 64-bit register from memory; by address, or by another register and an offset. */
static bool is_load(const uint8_t *code, bool by_address)
{
	return (code[0] & 0xf8) == 0x48 && code[1] == 0x8b &&
	       (by_address ? (code[2] & 0xc7) == 0x05
			   : (code[2] & 0xc0) == 0x80 && (code[2] & 7) != 4);
}

/*
 * The first word of the executor globals that zend_get_executed_scope loads: by address, or by what
 * it has of their address. 0 = it does not say.
 */
static uint64_t find_frame(const struct elf_exports *symbols, const struct elf_export *globals)
{
	uint8_t code[SCOPE_CODE_BYTES];
	struct elf_export scope;

	if (!elf_exports_find(symbols, "zend_get_executed_scope", &scope) ||
	    !elf_exports_read(symbols, scope.address, code, sizeof(code)))
		return 0;
	for (size_t i = 0; i + 7 <= sizeof(code); i++) {
		uint64_t operand = (uint64_t)(int64_t)operand_at(code + i + 3);
		uint64_t at = scope.address + i + 7 + operand - globals->address;

		if (is_load(code + i, true) && at && at < globals->bytes)
			return at;
		if (is_load(code + i, false) && operand < globals->bytes)
			return operand;
	}
	return 0;
}

/* A load of a floating-point register, as is_load. */
static bool is_float_load(const uint8_t *code, bool by_address)
{
	return code[0] == 0xf2 && code[1] == 0x0f && code[2] == 0x10 &&
	       (by_address ? (code[3] & 0xc7) == 0x05
			   : (code[3] & 0xc0) == 0x80 && (code[3] & 7) != 4);
}

/*
 * The only number with a fraction in the SAPI's globals, which sapi_get_request_time begins with.
 * 0 = not known.
 */
static uint64_t find_request_time(const struct elf_exports *symbols)
{
	uint8_t code[TIME_CODE_BYTES];
	struct elf_export function, globals;

	if (!elf_exports_find(symbols, "sapi_get_request_time", &function) ||
	    !elf_exports_find(symbols, "sapi_globals", &globals) ||
	    !elf_exports_read(symbols, function.address, code, sizeof(code)))
		return 0;
	for (size_t i = 0; i + 8 <= sizeof(code); i++) {
		uint64_t operand = (uint64_t)(int64_t)operand_at(code + i + 4);
		uint64_t at = function.address + i + 8 + operand - globals.address;

		if (is_float_load(code + i, false))
			at = operand;
		else if (!is_float_load(code + i, true))
			continue;
		if (at && at % 8 == 0 && at < globals.bytes)
			return globals.address + at;
	}
	return 0;
}

/* ---- the loop ---- */

/* The binary's code, and where the loop is in it. */
static bool set_code(const struct elf_exports *symbols, const struct elf_export *loop,
		     struct script_php_layout *ret)
{
	const struct elf_info *info = symbols->info;

	for (size_t i = 0; i < info->segments_count; i++) {
		const struct elf_segment *segment = &info->segments[i];
		uint64_t into = loop->address - segment->address;

		if (!segment->executable || into >= segment->file_bytes ||
		    segment->file_bytes > UINT32_MAX || loop->bytes > segment->file_bytes - into)
			continue;
		ret->code_start = segment->address;
		ret->code_bytes = (uint32_t)segment->file_bytes;
		ret->loop_start = (uint32_t)into;
		ret->loop_bytes = (uint32_t)loop->bytes;
		return true;
	}
	return false;
}

static bool is_hybrid(const struct elf_exports *symbols)
{
	static const uint8_t branch_mark[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t code[10];
	struct elf_export kind;
	size_t at = 0;

	if (!elf_exports_find(symbols, "zend_vm_kind", &kind) ||
	    !elf_exports_read(symbols, kind.address, code, sizeof(code)))
		return false;
	if (!memcmp(code, branch_mark, sizeof(branch_mark)))
		at = sizeof(branch_mark);
	return code[at] == 0xb8 && operand_at(code + at + 1) == VM_IS_HYBRID &&
	       code[at + 5] == 0xc3;
}

/*
 * How large the loop's frame is, which all generated code runs in, by the instructions that make
 * it: pushes of registers, one of them rbp, which may then become the frame pointer, and one that
 * takes the rest.
 */
static void read_frame(const struct elf_exports *symbols, const struct elf_export *loop,
		       struct script_php_layout *ret)
{
	uint8_t code[PROLOGUE_BYTES];
	uint32_t pushes = 0, fp = 0, bytes = 0;
	size_t at = 0;

	if (!elf_exports_read(symbols, loop->address, code, sizeof(code)))
		return;
	if (code[0] == 0xf3 && code[1] == 0x0f)
		at += 4; /* endbr64 */
	while (at + 7 <= sizeof(code)) {
		if ((code[at] & 0xf8) == 0x50) {
			pushes++;
			if (code[at++] == 0x55)
				fp = pushes;
		} else if (code[at] == 0x41 && (code[at + 1] & 0xf8) == 0x50) {
			pushes++;
			at += 2;
		} else if (code[at] == 0x48 && code[at + 1] == 0x89 && code[at + 2] == 0xe5) {
			at += 3; /* mov %rsp,%rbp */
		} else if (code[at] == 0x48 && code[at + 1] == 0x83 && code[at + 2] == 0xec) {
			bytes = code[at + 3];
			break;
		} else if (code[at] == 0x48 && code[at + 1] == 0x81 && code[at + 2] == 0xec) {
			bytes = (uint32_t)operand_at(code + at + 3);
			break;
		} else {
			return;
		}
	}
	if (!fp || !bytes || bytes % 8 || bytes / 8 + pushes > UINT8_MAX)
		return;
	ret->entry_words = (uint8_t)(bytes / 8 + pushes);
	ret->fp_words = (uint8_t)fp;
}

/* Extensions with a loop of their own (debuggers, measures of coverage) run instructions by it. */
static void add_handler(const struct elf_exports *symbols, struct runtime_file *ret)
{
	struct elf_export handler;

	if (elf_exports_find(symbols, "zend_vm_call_opcode_handler", &handler))
		runtime_file_add_loop(ret, symbols, &handler);
}

void php_file_read(const struct elf_exports *symbols, const struct elf_export *loop,
		   struct runtime_file *ret)
{
	const struct known_version *known = read_version(symbols, ret);
	struct elf_export globals;
	uint64_t frame;

	ret->script.kind = SCRIPT_PHP;
	if (!runtime_file_add_loop(ret, symbols, loop) ||
	    !set_code(symbols, loop, &ret->script.php))
		ret->problem = "no evaluation loop";
	else if (!ret->problem && !elf_exports_find(symbols, "executor_globals", &globals))
		ret->problem = "executor globals not found";
	if (ret->problem)
		return;
	add_handler(symbols, ret);
	frame = find_frame(symbols, &globals);
	ret->source = frame ? "code" : "table";
	ret->layout.php = known->layout;
	ret->script.php.file = php_layout_file(&known->layout);
	ret->script.php.generator = known->generator;
	if (is_hybrid(symbols))
		read_frame(symbols, loop, &ret->script.php);
	ret->script.state_form = SCRIPT_STATE_GLOBAL;
	ret->script.state_at = globals.address + (frame ? frame : known->frame);
	if (known->interface >= FLAGS_KNOWN_SINCE)
		ret->script.key_at = find_request_time(symbols);
}
