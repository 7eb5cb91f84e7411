/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/vdso.h"

#include <elf.h>
#include <pthread.h>
#include <sys/auxv.h>

#include "codec/elf/elf.h"

#define VDSO_BYTES ((size_t)4096) /* headers and notes lie in the first of its pages */
#define FUNCTIONS_MAX 64u

struct function {
	uint64_t start, end;
	const char *name; /* in the image, which stays */
	bool is_weak;	  /* an alias: "clock_gettime" of "__vdso_clock_gettime" */
};

static char build_id[ELF_BUILD_ID_TEXT_BYTES];
static struct function functions[FUNCTIONS_MAX];
static size_t functions_count;

/* What the dynamic section says; offsets into the image. */
struct tables {
	uint64_t symbols, strings, strings_bytes;
};

static void add_function(const char *image, const struct tables *tables, const Elf64_Sym *symbol)
{
	const char *name = image + tables->strings + symbol->st_name;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_size ||
	    symbol->st_shndx == SHN_UNDEF || functions_count == FUNCTIONS_MAX ||
	    symbol->st_name >= tables->strings_bytes ||
	    !memchr(name, 0, tables->strings_bytes - symbol->st_name))
		return;
	functions[functions_count++] =
		(struct function){ symbol->st_value, symbol->st_value + symbol->st_size, name,
				   ELF64_ST_BIND(symbol->st_info) == STB_WEAK };
}

/* The table of strings follows that of symbols, as linkers lay them. */
static void read_symbols(const char *image, const struct tables *tables, uint64_t image_bytes)
{
	if (!tables->symbols || tables->strings <= tables->symbols ||
	    tables->strings > image_bytes || tables->strings_bytes > image_bytes - tables->strings)
		return;
	for (uint64_t at = tables->symbols; at + sizeof(Elf64_Sym) <= tables->strings;
	     at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;

		memcpy(&symbol, image + at, sizeof(symbol));
		add_function(image, tables, &symbol);
	}
}

static void read_dynamic(const char *image, const Elf64_Phdr *segment, uint64_t image_bytes)
{
	struct tables tables = { 0 };
	Elf64_Dyn entry;

	for (uint64_t at = segment->p_offset;
	     at + sizeof(entry) <= segment->p_offset + segment->p_filesz &&
	     at + sizeof(entry) <= image_bytes;
	     at += sizeof(entry)) {
		memcpy(&entry, image + at, sizeof(entry));
		if (entry.d_tag == DT_SYMTAB)
			tables.symbols = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRTAB)
			tables.strings = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRSZ)
			tables.strings_bytes = entry.d_un.d_val;
	}
	read_symbols(image, &tables, image_bytes);
}

/* It is loaded where it is in its file, so that offsets, addresses and places in memory agree. */
static void read_functions(const char *image)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	uint64_t image_bytes = 0;

	memcpy(&header, image, sizeof(header));
	for (int pass = 0; pass < 2; pass++) {
		for (uint16_t i = 0; i < header.e_phnum; i++) {
			uint64_t at = header.e_phoff + (uint64_t)i * sizeof(segment);

			if (at + sizeof(segment) > VDSO_BYTES)
				return;
			memcpy(&segment, image + at, sizeof(segment));
			if (!pass && segment.p_type == PT_LOAD && !segment.p_offset &&
			    !segment.p_vaddr)
				image_bytes = segment.p_filesz;
			else if (pass && segment.p_type == PT_DYNAMIC)
				read_dynamic(image, &segment, image_bytes);
		}
	}
}

static void read_vdso(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct elf_info info;

	if (!image || elf_parse_info(slice_from(image, VDSO_BYTES), "[vdso]", &info, NULL) ||
	    info.id_kind != ELF_ID_GNU)
		return;
	memcpy(build_id, info.build_id, sizeof(build_id));
	read_functions(image);
}

static void once(void)
{
	static pthread_once_t control = PTHREAD_ONCE_INIT;

	pthread_once(&control, read_vdso);
}

const char *vdso_build_id(void)
{
	once();
	return build_id;
}

struct slice vdso_function(uint64_t offset)
{
	const struct function *found = NULL;

	once();
	for (size_t i = 0; i < functions_count; i++) {
		const struct function *function = &functions[i];

		if (offset >= function->start && offset < function->end &&
		    (!found || (found->is_weak && !function->is_weak)))
			found = function;
	}
	return found ? slice_of(found->name) : SLICE_LITERAL("");
}
