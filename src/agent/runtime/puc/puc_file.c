/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: Lua's lstate.h, lobject.h of the versions named.
 */
#include "agent/runtime/puc/puc_file.h"

#include <stdio.h>
#include <string.h>

#include "agent/runtime/large_functions.h"

#define IDENT_BYTES 32u /* "$LuaVersion: Lua 5.4.4  Copyrig" */
#define LOOP_MIN 4096u
#define LOOP_MAX 262144u
#define HEAD_BYTES 192u /* of the loop */
#define BETWEEN_MAX 24u /* two loads that belong together */
#define FUNCTION_PROTOTYPE 24u

struct known_version {
	uint8_t major, minor, patch_min;
	struct script_puc_layout walk;
	struct puc_layout layout;
};

/* clang-format off */
static const struct known_version known_versions[] = {
	{ 5, 2, 0,
	  { .stack = 56, .status = 10, .base_call = 128, .position = 56, .flags = 34,
	    .lua_flag = 1, .entry_flag = 4, .forms = SCRIPT_PUC_ENTRY_UNFLAGGED,
	    .proof = 16, .code = 24, .code_count = 88 },
	  { .code = 24, .code_count = 88, .lines = 40, .lines_count = 92, .first_line = 104,
	    .source = 72, .constants = 16, .constants_count = 84, .locals = 48,
	    .locals_count = 100, .captured = 56, .captured_count = 80,
	    .instructions = PUC_INSTRUCTIONS_5_2, .proof = 16 } },
	{ 5, 3, 3,
	  { .stack = 56, .status = 12, .base_call = 96, .position = 40, .flags = 66,
	    .lua_flag = 2, .entry_flag = 8, .proof = 48, .code = 56, .code_count = 24 },
	  { .code = 56, .code_count = 24, .lines = 72, .lines_count = 28, .first_line = 40,
	    .source = 104, .constants = 48, .constants_count = 20, .locals = 80,
	    .locals_count = 36, .captured = 88, .captured_count = 16,
	    .instructions = PUC_INSTRUCTIONS_5_3, .proof = 48 } },
	{ 5, 4, 3,
	  { .stack = 48, .status = 10, .base_call = 96, .position = 32, .flags = 62,
	    .lua_flag = 2, .entry_flag = 4,
	    .forms = SCRIPT_PUC_C_FLAGGED | SCRIPT_PUC_IN_REGISTER, .proof = 56, .code = 64,
	    .code_count = 24 },
	  { .code = 64, .code_count = 24, .lines = 88, .lines_count = 28, .bases = 96,
	    .bases_count = 40, .first_line = 44, .source = 112, .constants = 56,
	    .constants_count = 20, .locals = 104, .locals_count = 36, .captured = 80,
	    .captured_count = 16, .instructions = PUC_INSTRUCTIONS_5_4, .proof = 56 } },
};
/* clang-format on */

static const struct known_version *read_version(const struct elf_exports *symbols,
						const struct elf_export *ident,
						struct runtime_file *ret)
{
	char text[IDENT_BYTES + 1] = "";
	unsigned major, minor, patch;

	if (!elf_exports_read(symbols, ident->address, text, IDENT_BYTES) ||
	    sscanf(text, "$LuaVersion: Lua %2u.%2u.%2u", &major, &minor, &patch) != 3)
		return NULL;
	snprintf(ret->version, sizeof(ret->version), "%u.%u.%u", major, minor, patch);
	for (size_t i = 0; i < sizeof(known_versions) / sizeof(known_versions[0]); i++) {
		const struct known_version *known = &known_versions[i];

		if (known->major == major && known->minor == minor && patch >= known->patch_min)
			return known;
	}
	return NULL;
}

/* ---- the loop ---- */

struct loop_sought {
	const struct elf_exports *symbols;
	uint8_t constants;
};

/* mov at(%base),%to, 64 bits wide, with a short offset; from a register that needs no SIB byte. */
static bool is_load(const uint8_t *code, uint8_t at, uint8_t *ret_base, uint8_t *ret_to)
{
	if ((code[0] & 0xf8) != 0x48 || code[1] != 0x8b || code[2] >> 6 != 1 ||
	    (code[2] & 7) == 4 || code[3] != at)
		return false;
	*ret_base = (uint8_t)((code[0] & 1) << 3 | (code[2] & 7));
	*ret_to = (uint8_t)((code[0] & 4) << 1 | (code[2] >> 3 & 7));
	return true;
}

/* From the closure to its prototype, to the constants of that. */
static bool is_loop(void *context, struct cfi *cfi, const struct large_function *function)
{
	const struct loop_sought *sought = context;
	uint8_t code[HEAD_BYTES], base, prototype, from, to;

	(void)cfi;
	if (!elf_exports_read(sought->symbols, function->start, code, sizeof(code)))
		return false;
	for (size_t i = 0; i + 4 <= sizeof(code); i++) {
		if (!is_load(code + i, FUNCTION_PROTOTYPE, &base, &prototype))
			continue;
		for (size_t j = i + 4; j + 4 <= sizeof(code) && j < i + BETWEEN_MAX; j++)
			if (is_load(code + j, sought->constants, &from, &to) && from == prototype)
				return true;
	}
	return false;
}

static bool add_loop(const struct elf_exports *symbols, uint8_t constants, struct runtime_file *ret)
{
	struct loop_sought sought = { symbols, constants };
	struct large_function_query query = { "Lua", LOOP_MIN, LOOP_MAX, is_loop, &sought };
	struct large_function loop = { 0 };
	struct elf_export found;

	if (!large_functions_find(symbols, &query, &loop))
		return false;
	found = (struct elf_export){ loop.start, loop.end - loop.start };
	ret->script.puc.code_start = found.address;
	ret->script.puc.code_bytes = (uint32_t)found.bytes;
	return runtime_file_add_loop(ret, symbols, &found);
}

void puc_file_read(const struct elf_exports *symbols, const struct elf_export *ident,
		   struct runtime_file *ret)
{
	const struct known_version *known = read_version(symbols, ident, ret);

	ret->script.kind = SCRIPT_PUC;
	ret->script.state_form = SCRIPT_STATE_GLOBAL;
	ret->problem = "unknown layout";
	if (!known)
		return;
	ret->script.puc = known->walk;
	if (!add_loop(symbols, known->layout.constants, ret)) {
		ret->problem = "no evaluation loop";
		return;
	}
	ret->layout.puc = known->layout;
	ret->source = "table";
	ret->problem = NULL;
}
