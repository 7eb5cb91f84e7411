/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions as GCC emits them for x86-64. */
#include "agent/runtime/dotnet/mono_file.h"

#include <stdio.h>
#include <string.h>

#include "agent/runtime/thread_variable.h"

#define CODE_BYTES 96u
#define LONG_CODE_BYTES 160u
#define GETTER_BYTES 16u /* of a function that only loads a word */
#define DATA_BYTES_MAX (8u << 20)
#define VERSION_BYTES 12u
#define MODRM_FROM_DI 0x47u /* disp8(%rdi), %(r|e)ax */
#define MODRM_AT_DI 0x07u   /* (%rdi), %(r|e)ax */
#define MODRM_DISP8(modrm) ((modrm) >> 6 == 1)
#define POINTER_BYTES 8u

/* In the bits of a MonoJitInfo, counted from the one that says that it is being loaded. */
#define TRAMPOLINE_BITS 3u

/* What `mov disp8(%rdi),...` loads, at the beginning of the function; `opcode` is that of mov. */
static bool find_load(const struct elf_exports *symbols, const char *name, const char *opcode,
		      uint8_t *ret)
{
	size_t len = strlen(opcode);
	struct function_code function;

	if (!function_code_read(symbols, name, &function))
		return false;
	for (size_t i = 0; i + len + 2 <= GETTER_BYTES; i++) {
		if (memcmp(function.code + i, opcode, len) != 0 ||
		    function.code[i + len] != MODRM_FROM_DI)
			continue;
		*ret = function.code[i + len + 1];
		return *ret < 128;
	}
	return false;
}

/* A longer function loads the word there, from whatever register. */
static bool loads(const struct elf_exports *symbols, const char *name, uint8_t at)
{
	uint8_t code[CODE_BYTES];
	struct elf_export symbol;

	if (!elf_exports_find(symbols, name, &symbol) ||
	    !elf_exports_read(symbols, symbol.address, code, sizeof(code)))
		return false;
	for (size_t i = 0; i + 4 <= sizeof(code); i++)
		if ((code[i] & 0xf8) == 0x48 && code[i + 1] == 0x8b && MODRM_DISP8(code[i + 2]) &&
		    code[i + 3] == at)
			return true;
	return false;
}

/* `test $mask,%al` from *at on; the number of the one bit of the mask. */
static bool next_test(const uint8_t *code, size_t len, size_t *at, uint8_t *ret)
{
	for (; *at + 2 <= len; (*at)++) {
		if (code[*at] != 0xa8)
			continue;
		if (__builtin_popcount(code[*at + 1]) != 1)
			return false;
		*ret = (uint8_t)__builtin_ctz(code[++*at]);
		return true;
	}
	return false;
}

/*
 * mono_jit_info_get_method refuses methods that are being loaded, and then trampolines, by two bits
 * of the same byte: where those are, the others are, too.
 */
static bool find_bits(const struct elf_exports *symbols, struct mono_symbols *mono)
{
	static const char movzbl[] = { 0x0f, (char)0xb6, MODRM_FROM_DI };
	struct function_code function;
	const uint8_t *load;
	uint8_t loading, trampoline;
	size_t at;

	if (!function_code_read(symbols, "mono_jit_info_get_method", &function))
		return false;
	load = memmem(function.code, FUNCTION_CODE_BYTES - 1, movzbl, sizeof(movzbl));
	if (!load)
		return false;
	at = (size_t)(load - function.code) + sizeof(movzbl) + 1;
	if (!next_test(function.code, FUNCTION_CODE_BYTES, &at, &loading) ||
	    !next_test(function.code, FUNCTION_CODE_BYTES, &at, &trampoline) ||
	    trampoline != loading + TRAMPOLINE_BITS)
		return false;
	mono->info_bits = (uint8_t)(mono->info_size + 4);
	if (load[sizeof(movzbl)] != mono->info_bits + 3)
		return false;
	mono->is_loading = (uint8_t)(24 + loading);
	for (at = 0; at + 3 <= FUNCTION_CODE_BYTES; at++)
		if (!memcmp(function.code + at, "\x48\x8b", 2) &&
		    function.code[at + 2] == MODRM_AT_DI)
			return true; /* the method is the first word */
	return false;
}

static bool find_root(const struct elf_exports *symbols, struct mono_symbols *mono)
{
	static const struct code_pattern load_ax = { { 0x48, 0x8b, 0x05 }, 3, true };
	const struct elf_info *info = symbols->info;
	struct function_code function;
	size_t at = 0;

	if (!function_code_read(symbols, "mono_get_root_domain", &function) ||
	    !function_code_next(&function, &load_ax, &at, &mono->root_domain) || at > GETTER_BYTES)
		return false;
	for (size_t i = 0; i < info->segments_count; i++) {
		const struct elf_segment *segment = &info->segments[i];

		if (segment->executable ||
		    mono->root_domain - segment->address >= segment->memory_bytes)
			continue;
		mono->data =
			(segment->address + POINTER_BYTES - 1) & ~(uint64_t)(POINTER_BYTES - 1);
		mono->data_bytes = segment->memory_bytes;
		return mono->data_bytes <= DATA_BYTES_MAX;
	}
	return false;
}

/* mono_domain_get_by_id compares with the length of the list, then loads from it. */
static void find_domains(const struct elf_exports *symbols, struct mono_symbols *mono)
{
	static const uint8_t count[] = { 0x0f, 0xb7, 0x05 }, list[] = { 0x48, 0x8b, 0x05 };
	uint8_t code[LONG_CODE_BYTES];
	struct elf_export symbol;
	uint64_t found[2] = { 0 };
	int32_t distance;

	if (!elf_exports_find(symbols, "mono_domain_get_by_id", &symbol) ||
	    !elf_exports_read(symbols, symbol.address, code, sizeof(code)))
		return;
	for (size_t i = 0; i + 7 <= sizeof(code) && !found[1]; i++) {
		if (memcmp(code + i, found[0] ? list : count, 3) != 0)
			continue;
		memcpy(&distance, code + i + 3, sizeof(distance));
		found[found[0] ? 1 : 0] = symbol.address + i + 7 + (uint64_t)(int64_t)distance;
	}
	if (found[0] - mono->data >= mono->data_bytes || found[1] - mono->data >= mono->data_bytes)
		return;
	mono->domains_count = found[0];
	mono->domains = found[1];
}

static bool find_layout(const struct elf_exports *symbols, struct mono_symbols *mono)
{
	if (!find_root(symbols, mono) ||
	    !find_load(symbols, "mono_jit_info_get_code_start", "\x48\x8b", &mono->info_start) ||
	    !find_load(symbols, "mono_jit_info_get_code_size", "\x8b", &mono->info_size) ||
	    mono->info_size != mono->info_start + 12 || !find_bits(symbols, mono) ||
	    !find_load(symbols, "mono_method_get_class", "\x48\x8b", &mono->method_class) ||
	    !find_load(symbols, "mono_method_get_name", "\x48\x8b", &mono->method_name) ||
	    !find_load(symbols, "mono_class_get_nesting_type", "\x48\x8b", &mono->class_outer))
		return false;
	find_domains(symbols, mono);
	/* Behind the image. */
	mono->class_name = (uint8_t)(mono->class_outer + 16);
	mono->class_namespace = (uint8_t)(mono->class_outer + 24);
	return loads(symbols, "mono_class_get_name", mono->class_name) &&
	       loads(symbols, "mono_class_get_namespace", mono->class_namespace);
}

/* One of the texts from which the function that tells the version makes what it says. */
static bool take_version(const struct elf_exports *symbols, const struct code_pattern *pattern,
			 struct runtime_file *ret)
{
	unsigned int major, minor, patch;
	char text[VERSION_BYTES + 1] = "";
	struct function_code function;
	uint64_t address;
	size_t at = 0;

	if (!function_code_read(symbols, "mono_get_runtime_build_info", &function) ||
	    !function_code_next(&function, pattern, &at, &address) ||
	    !elf_exports_read(symbols, address, text, VERSION_BYTES) ||
	    sscanf(text, "%3u.%3u.%3u", &major, &minor, &patch) != 3)
		return false;
	snprintf(ret->version, sizeof(ret->version), "mono-%u.%u.%u", major & 63, minor & 255,
		 patch & 255);
	return true;
}

void mono_file_read(const struct elf_exports *symbols, const struct elf_export *mark,
		    struct runtime_file *ret)
{
	static const struct code_pattern lea_si = { { 0x48, 0x8d, 0x35 }, 3, true };
	static const struct code_pattern lea_dx = { { 0x48, 0x8d, 0x15 }, 3, true };

	(void)mark;
	if (!take_version(symbols, &lea_si, ret))
		take_version(symbols, &lea_dx, ret);
	if (find_layout(symbols, &ret->layout.dotnet.mono))
		ret->source = "code";
	else
		ret->problem = "unknown layout";
}
