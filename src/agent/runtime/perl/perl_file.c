/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: Perl's cop.h, intrpvar.h, hv.h of the versions named.
 */
#include "agent/runtime/perl/perl_file.h"

#include <stdio.h>
#include <string.h>

#define PLACE_CODE_BYTES 32u
#define ENTRY_CODE_BYTES 192u
#define CATCH_BYTES 512u	/* at most, of the function that catches errors */
#define INSTRUCTIONS_COUNT 512u /* as many and more, of all versions */
#define INSTRUCTION_NAME_BYTES 32u
#define INTERPRETER_MAX 4096 /* what we look for is at its start */

struct known_version {
	uint8_t first, last; /* 5.x */
	uint8_t context_bytes, sub;
	bool links_calls, has_names_in_bodies;
};

static const struct known_version known_versions[] = {
	{ 28, 30, 96, 64, false, false },
	{ 32, 34, 104, 72, true, false },
	{ 36, 42, 104, 72, true, true },
};

static bool read_number(const struct elf_exports *symbols, const char *name, uint8_t *ret)
{
	struct elf_export symbol;

	return elf_exports_find(symbols, name, &symbol) &&
	       elf_exports_read(symbols, symbol.address, ret, 1);
}

static const struct known_version *read_version(const struct elf_exports *symbols,
						struct runtime_file *ret)
{
	uint8_t revision, version, patch;

	if (!read_number(symbols, "PL_revision", &revision) ||
	    !read_number(symbols, "PL_version", &version) ||
	    !read_number(symbols, "PL_subversion", &patch))
		return NULL;
	snprintf(ret->version, sizeof(ret->version), "%u.%u.%u", (unsigned)revision,
		 (unsigned)version, (unsigned)patch);
	if (revision != 5 || version % 2) /* odd ones are on the way to the next */
		return NULL;
	for (size_t i = 0; i < sizeof(known_versions) / sizeof(known_versions[0]); i++)
		if (version >= known_versions[i].first && version <= known_versions[i].last)
			return &known_versions[i];
	return NULL;
}

static int32_t operand_at(const uint8_t *code)
{
	int32_t operand;

	memcpy(&operand, code, sizeof(operand));
	return operand;
}

/* The first 64-bit load from what a register points at with a 32-bit offset; 0 = none. */
static uint32_t first_load(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i + 7 <= len; i++) {
		int32_t operand = operand_at(code + i + 3);

		if ((code[i] & 0xf8) == 0x48 && code[i + 1] == 0x8b &&
		    (code[i + 2] & 0xc0) == 0x80 && (code[i + 2] & 7) != 4 && operand > 0 &&
		    operand < INTERPRETER_MAX)
			return (uint32_t)operand;
	}
	return 0;
}

static bool read_code(const struct elf_exports *symbols, const char *name, uint8_t *code,
		      size_t len, struct elf_export *ret)
{
	return elf_exports_find(symbols, name, ret) &&
	       elf_exports_read(symbols, ret->address, code, len);
}

/*
 * Of an interpreter that a thread has: the first thing that either looks at is, in it, the stack of
 * contexts that caller() goes through, and the statement that says which warnings are wanted.
 */
static bool find_places(const struct elf_exports *symbols, struct script_perl_layout *ret)
{
	uint8_t caller[PLACE_CODE_BYTES], warns[PLACE_CODE_BYTES];
	struct elf_export symbol;

	if (!read_code(symbols, "Perl_caller_cx", caller, sizeof(caller), &symbol) ||
	    !read_code(symbols, "Perl_ckwarn", warns, sizeof(warns), &symbol))
		return false;
	ret->stack = first_load(caller, sizeof(caller));
	ret->statement = first_load(warns, sizeof(warns));
	return ret->stack && ret->statement;
}

/* The only interpreter, which is in variables of the binary. */
static bool find_variables(const struct elf_exports *symbols, struct script_perl_layout *ret)
{
	struct elf_export stack, statement;

	if (!elf_exports_find(symbols, "PL_curstackinfo", &stack) ||
	    !elf_exports_find(symbols, "PL_curcop", &statement) || stack.address > UINT32_MAX ||
	    statement.address > UINT32_MAX)
		return false;
	ret->stack = (uint32_t)stack.address;
	ret->statement = (uint32_t)statement.address;
	return true;
}

static bool find_state(const struct elf_exports *symbols, struct runtime_file *ret)
{
	struct elf_export key;

	ret->layout.perl.is_threaded = elf_exports_find(symbols, "PL_thr_key", &key);
	if (!ret->layout.perl.is_threaded) {
		ret->script.state_form = SCRIPT_STATE_GLOBAL;
		ret->script.state_at = 0;
		ret->script.perl.file_bytes = 8;
		return find_variables(symbols, &ret->script.perl);
	}
	ret->script.state_form = SCRIPT_STATE_KEY_NUMBER;
	ret->script.state_at = key.address;
	ret->script.perl.file_bytes = 16;
	return find_places(symbols, &ret->script.perl);
}

/* ---- native functions ---- */

/* A load of rsi: the address itself, or a word of the global offset table that has it. */
static bool is_own_address(const struct elf_exports *symbols, uint64_t entry, const uint8_t *code,
			   uint64_t next)
{
	uint64_t target = next + (uint64_t)(int64_t)operand_at(code + 3);

	if (code[0] != 0x48 || (code[2] & 0xc7) != 0x05)
		return false;
	return code[1] == 0x8d ? target == entry
			       : code[1] == 0x8b && elf_exports_relocation(symbols, target);
}

/* Functions that run instructions: exported up to 5.36, then in a table, as their names are. */
static uint64_t find_instruction(const struct elf_exports *symbols, const char *name)
{
	uint64_t names[INSTRUCTIONS_COUNT], functions[INSTRUCTIONS_COUNT];
	struct elf_export exported, table;
	char text[INSTRUCTION_NAME_BYTES] = "Perl_pp_";
	size_t len = strlen(name) + 1, prefix = strlen(text);

	memcpy(text + prefix, name, len);
	if (elf_exports_find(symbols, text, &exported))
		return exported.address;
	if (!elf_exports_find(symbols, "PL_op_name", &table))
		return 0;
	elf_exports_pointers(symbols, table.address, names, INSTRUCTIONS_COUNT);
	if (!elf_exports_find(symbols, "PL_ppaddr", &table))
		return 0;
	elf_exports_pointers(symbols, table.address, functions, INSTRUCTIONS_COUNT);
	for (size_t i = 0; i < INSTRUCTIONS_COUNT; i++)
		if (names[i] && elf_exports_read(symbols, names[i], text, len) &&
		    !memcmp(text, name, len))
			return functions[i];
	return 0;
}

/*
 * A block of eval is entered by a function of its own where errors would go past the C code that
 * called the interpreter: that gets the address of the instruction's function, which asks for it,
 * and does not say its name.
 */
static void find_catches(const struct elf_exports *symbols, struct perl_function *ret)
{
	uint64_t entry = find_instruction(symbols, "entertry"), offset;
	uint8_t code[ENTRY_CODE_BYTES];

	if (!entry || !elf_exports_read(symbols, entry, code, sizeof(code)))
		return;
	for (size_t i = 0; i + 7 + 16 <= sizeof(code); i++) {
		if (!is_own_address(symbols, entry, code + i, entry + i + 7))
			continue;
		for (size_t j = i + 7; j < i + 16; j++) {
			uint64_t target =
				entry + j + 5 + (uint64_t)(int64_t)operand_at(code + j + 1);

			if ((code[j] == 0xe8 || code[j] == 0xe9) &&
			    elf_address_to_offset(symbols->info, target, &offset)) {
				*ret = (struct perl_function){ offset, CATCH_BYTES };
				return;
			}
		}
	}
}

static void find_functions(const struct elf_exports *symbols, struct perl_layout *ret)
{
	struct elf_export symbol;

	if (elf_exports_find(symbols, "perl_run", &symbol) &&
	    elf_address_to_offset(symbols->info, symbol.address, &ret->program.offset))
		ret->program.bytes = symbol.bytes;
	ret->statement = find_instruction(symbols, "nextstate");
	find_catches(symbols, &ret->catches);
}

void perl_file_read(const struct elf_exports *symbols, const struct elf_export *loop,
		    struct runtime_file *ret)
{
	const struct known_version *known = read_version(symbols, ret);
	struct elf_export debug_loop;

	ret->script.kind = SCRIPT_PERL;
	runtime_file_add_loop(ret, symbols, loop);
	if (elf_exports_find(symbols, "Perl_runops_debug", &debug_loop))
		runtime_file_add_loop(ret, symbols, &debug_loop);
	if (!known || !find_state(symbols, ret)) {
		ret->problem = "unknown layout";
		return;
	}
	ret->source = "code";
	ret->script.perl.context_bytes = known->context_bytes;
	ret->script.perl.sub = known->sub;
	ret->script.perl.links_calls = known->links_calls;
	ret->layout.perl.has_names_in_bodies = known->has_names_in_bodies;
	find_functions(symbols, &ret->layout.perl);
}
