/* SPDX-License-Identifier: Apache-2.0 */
/* forged_wasm - the image of a module as wasmtime keeps it in memory, laid out by hand. */
#ifndef FIRN_TESTS_UNIT_AGENT_FORGED_WASM_H
#define FIRN_TESTS_UNIT_AGENT_FORGED_WASM_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

#define WASM_TEXT_AT 0x1000u /* of the image: where the code begins */
#define WASM_TEXT_BYTES 0x3000u
#define WASM_BYTES 0x6000u
#define WASM_SYMBOLS_AT 0x4000u
#define WASM_NAMES_AT 0x4800u
#define WASM_SECTIONS_AT 0x5000u
#define WASM_SECTION_NAMES_AT 0x5800u

enum {
	WASM_NONE,
	WASM_ENGINE,
	WASM_TEXT,
	WASM_SYMBOLS,
	WASM_NAMES,
	WASM_SECTION_NAMES,
	WASM_SECTIONS
};

/* push %rbp; mov %rsp,%rbp; nop; mov %rbp,%rsp; pop %rbp; ret */
static const uint8_t wasm_function[] = {
	0x55, 0x48, 0x89, 0xe5, 0x90, 0x48, 0x89, 0xec, 0x5d, 0xc3
};
#define WASM_RETURN_AT 9u

static inline Elf64_Ehdr *wasm_header(uint8_t *image)
{
	return (Elf64_Ehdr *)(void *)image;
}

static inline Elf64_Shdr *wasm_section(uint8_t *image, int number)
{
	return (Elf64_Shdr *)(void *)(image + WASM_SECTIONS_AT) + number;
}

static inline Elf64_Sym *wasm_symbol(uint8_t *image, size_t number)
{
	return (Elf64_Sym *)(void *)(image + WASM_SYMBOLS_AT) + number;
}

static inline uint32_t wasm_add_name(uint8_t *image, int section, const char *name)
{
	Elf64_Shdr *names = wasm_section(image, section);
	uint32_t at = (uint32_t)names->sh_size;

	memcpy(image + names->sh_offset + at, name, strlen(name) + 1);
	names->sh_size += strlen(name) + 1;
	return at;
}

static inline void wasm_add_section(uint8_t *image, int number, uint32_t type, uint64_t offset,
				    uint64_t bytes, const char *name)
{
	*wasm_section(image, number) = (Elf64_Shdr){
		.sh_name = wasm_add_name(image, WASM_SECTION_NAMES, name),
		.sh_type = type,
		.sh_offset = offset,
		.sh_size = bytes,
	};
}

/* A function of `bytes` at `at` of the code, which begins and ends as wasmtime's do. */
static inline void wasm_add_function(uint8_t *image, uint64_t at, uint64_t bytes, const char *name)
{
	Elf64_Shdr *symbols = wasm_section(image, WASM_SYMBOLS);

	*wasm_symbol(image, symbols->sh_size / sizeof(Elf64_Sym)) = (Elf64_Sym){
		.st_name = wasm_add_name(image, WASM_NAMES, name),
		.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
		.st_shndx = WASM_TEXT,
		.st_value = at,
		.st_size = bytes,
	};
	symbols->sh_size += sizeof(Elf64_Sym);
	memcpy(image + WASM_TEXT_AT + at, wasm_function, sizeof(wasm_function));
}

/* Of WASM_BYTES, without a function. */
static inline void wasm_forge(uint8_t *image, const char *version)
{
	memset(image, 0, WASM_BYTES);
	*wasm_header(image) = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT, 200 },
		.e_type = ET_REL,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shoff = WASM_SECTIONS_AT,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = WASM_SECTIONS,
		.e_shstrndx = WASM_SECTION_NAMES,
		.e_flags = 1,
	};
	wasm_section(image, WASM_SECTION_NAMES)->sh_offset = WASM_SECTION_NAMES_AT;
	wasm_add_name(image, WASM_SECTION_NAMES, "");
	wasm_add_section(image, WASM_ENGINE, SHT_PROGBITS, 0x40, 0x100, ".wasmtime.engine");
	wasm_add_section(image, WASM_TEXT, SHT_PROGBITS, WASM_TEXT_AT, WASM_TEXT_BYTES, ".text");
	wasm_section(image, WASM_TEXT)->sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	wasm_add_section(image, WASM_SYMBOLS, SHT_SYMTAB, WASM_SYMBOLS_AT, sizeof(Elf64_Sym),
			 ".symtab");
	wasm_section(image, WASM_SYMBOLS)->sh_entsize = sizeof(Elf64_Sym);
	wasm_section(image, WASM_SYMBOLS)->sh_link = WASM_NAMES;
	wasm_add_section(image, WASM_NAMES, SHT_STRTAB, WASM_NAMES_AT, 1, ".strtab");
	image[0x41] = (uint8_t)strlen(version);
	memcpy(image + 0x42, version, strlen(version));
}

#endif
