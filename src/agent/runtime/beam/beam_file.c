/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: erts/emulator/beam/{beam_ranges.c, beam_code.h, atom.h, index.h, hash.h, erl_process.h}
 * of the versions named.
 */
#include "agent/runtime/beam/beam_file.h"

#include <stdio.h>
#include <string.h>

#define FUNCTION_BYTES 48u
#define LOOKUP_BYTES 96u
#define HEADER_BYTES_MAX 4096u

struct known_release {
	unsigned int release;
	uint32_t current_process;
	uint16_t lines, segments;
};

/* From 28 on the text of an atom is a term. */
static const struct known_release known_releases[] = {
	{ 25, .current_process = 0xa8, .lines = 0x48, .segments = 0x78 },
	{ 26, .current_process = 0xa8, .lines = 0x48, .segments = 0x78 },
	{ 27, .current_process = 0xa8, .lines = 0x48, .segments = 0x78 },
};

static const struct known_release *find_release(unsigned int release)
{
	for (size_t i = 0; i < sizeof(known_releases) / sizeof(known_releases[0]); i++)
		if (known_releases[i].release == release)
			return &known_releases[i];
	return NULL;
}

static bool address_of(const struct elf_exports *symbols, const char *name, uint64_t *ret)
{
	struct elf_export found;

	if (!elf_exports_find(symbols, name, &found))
		return false;
	*ret = found.address;
	return true;
}

static uint64_t relative(const uint8_t *operand, uint64_t operand_at)
{
	int32_t distance;

	memcpy(&distance, operand, sizeof(distance));
	return operand_at + sizeof(distance) + (uint64_t)(int64_t)distance;
}

/* The first `call` of the code. */
static bool find_call(const uint8_t *code, uint64_t address, uint64_t *ret)
{
	for (size_t i = 0; i + 5 <= FUNCTION_BYTES; i++) {
		if (code[i] != 0xe8)
			continue;
		*ret = relative(code + i + 1, address + i + 1);
		return true;
	}
	return false;
}

/* The first `lea x(%rip), %register` of the code. */
static bool find_lea(const uint8_t *code, uint64_t address, uint64_t *ret)
{
	for (size_t i = 0; i + 7 <= FUNCTION_BYTES; i++) {
		if ((code[i] & 0xfb) != 0x48 || code[i + 1] != 0x8d || (code[i + 2] & 0xc7) != 5)
			continue;
		*ret = relative(code + i + 3, address + i + 3);
		return true;
	}
	return false;
}

/* erts_lookup_function_info calls what looks in the tables of modules, which begins with them. */
static bool find_ranges(const struct elf_exports *symbols, uint64_t *ret)
{
	uint8_t code[FUNCTION_BYTES];
	uint64_t at;

	return address_of(symbols, "erts_lookup_function_info", &at) &&
	       elf_exports_read(symbols, at, code, sizeof(code)) && find_call(code, at, &at) &&
	       elf_exports_read(symbols, at, code, sizeof(code)) && find_lea(code, at, ret);
}

/*
 * Where a module's header has its functions: what erts_lookup_function_info adds to the header, in
 * its first `lea x(%register), %register` without an index.
 */
static bool find_functions(const struct elf_exports *symbols, uint16_t *ret)
{
	uint8_t code[LOOKUP_BYTES];
	uint32_t wide;
	uint64_t at;

	if (!address_of(symbols, "erts_lookup_function_info", &at) ||
	    !elf_exports_read(symbols, at, code, sizeof(code)))
		return false;
	for (size_t i = 0; i + 7 <= sizeof(code); i++) {
		uint8_t form = code[i + 2] & 0xc7;

		if ((code[i] & 0xf8) != 0x48 || code[i + 1] != 0x8d || (form & 7) == 4 ||
		    !(form & 0xc0))
			continue;
		memcpy(&wide, code + i + 3, sizeof(wide));
		*ret = form & 0x80 ? (uint16_t)wide : code[i + 3];
		return (!(form & 0x80) || wide <= HEADER_BYTES_MAX) && *ret && !(*ret & 7);
	}
	return false;
}

/* mov key(%rip), %edi; jmp ethr_tsd_get */
static bool find_key(const struct elf_exports *symbols, uint64_t *ret)
{
	uint8_t code[FUNCTION_BYTES];
	uint64_t at;

	if (!address_of(symbols, "erts_get_scheduler_data", &at) ||
	    !elf_exports_read(symbols, at, code, sizeof(code)) || code[0] != 0x8b ||
	    code[1] != 0x3d)
		return false;
	*ret = relative(code + 2, at + 2);
	return true;
}

/* "25", and "13.1.5" of the runtime's own, of which the first alone says what a layout is. */
static unsigned int read_release(const struct elf_exports *symbols,
				 const struct elf_export *release, struct runtime_file *ret)
{
	char text[4] = "";
	unsigned int number;

	if (!elf_exports_read(symbols, release->address, text, 2) ||
	    sscanf(text, "%2u", &number) != 1)
		return 0;
	snprintf(ret->version, sizeof(ret->version), "%u", number);
	return number;
}

/* Compiled to machine code; the interpreter that other builds have keeps its stack elsewhere. */
static bool has_compiler(const struct elf_exports *symbols)
{
	struct elf_export found;
	uint32_t value = 0;

	return elf_exports_find(symbols, "etp_beamasm", &found) &&
	       elf_exports_read(symbols, found.address, &value, sizeof(value)) && value;
}

void beam_file_read(const struct elf_exports *symbols, const struct elf_export *release,
		    struct runtime_file *ret)
{
	const struct known_release *known = find_release(read_release(symbols, release, ret));
	struct beam_layout *layout = &ret->layout.beam;

	if (!has_compiler(symbols))
		ret->problem = "interpreted";
	else if (!known)
		ret->problem = "unknown layout";
	else if (!find_ranges(symbols, &layout->ranges) ||
		 !find_functions(symbols, &layout->functions) ||
		 !address_of(symbols, "the_active_code_index", &layout->active_code) ||
		 !address_of(symbols, "erts_atom_table", &layout->atoms) ||
		 !address_of(symbols, "erts_frame_layout", &layout->frame_layout) ||
		 !address_of(symbols, "beam_normal_exit", &layout->exit))
		ret->problem = "tables of code not found";
	else if (!find_key(symbols, &layout->key))
		ret->problem = "thread state not found";
	if (ret->problem)
		return;
	ret->source = "table";
	layout->current_process = known->current_process;
	layout->lines = known->lines;
	layout->segments = known->segments;
}
