/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/vdso_image.h"

#include <elf.h>
#include <string.h>

/* What the dynamic section says; offsets into the image. */
struct tables {
	uint64_t symbols, strings, strings_bytes;
};

/* Copies what lies whole in the image. */
static bool take(struct slice image, uint64_t at, void *ret, size_t bytes)
{
	if (at > image.len || bytes > image.len - at)
		return false;
	memcpy(ret, image.data + at, bytes);
	return true;
}

static bool take_segment(struct slice image, const Elf64_Ehdr *header, uint16_t number,
			 Elf64_Phdr *ret)
{
	uint64_t at = header->e_phoff;

	return at <= image.len &&
	       take(image, at + (uint64_t)number * sizeof(*ret), ret, sizeof(*ret));
}

/* The first segment of the type; of PT_LOAD the one that the image is. */
static bool find_segment(struct slice image, uint32_t type, Elf64_Phdr *ret)
{
	Elf64_Ehdr header;

	if (!take(image, 0, &header, sizeof(header)) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (uint16_t i = 0; i < header.e_phnum && take_segment(image, &header, i, ret); i++)
		if (ret->p_type == type && (type != PT_LOAD || (!ret->p_offset && !ret->p_vaddr)))
			return true;
	return false;
}

uint64_t vdso_image_bytes(struct slice page, uint64_t bytes_max)
{
	Elf64_Phdr load;

	if (!find_segment(page, PT_LOAD, &load) || load.p_filesz > bytes_max)
		return 0;
	return load.p_filesz;
}

static void add_function(struct slice image, const struct tables *tables, const Elf64_Sym *symbol,
			 struct vdso_image *ret)
{
	const char *name = image.data + tables->strings + symbol->st_name;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_size ||
	    symbol->st_shndx == SHN_UNDEF || symbol->st_size > UINT64_MAX - symbol->st_value ||
	    ret->functions_count == VDSO_IMAGE_FUNCTIONS_MAX ||
	    symbol->st_name >= tables->strings_bytes ||
	    !memchr(name, 0, tables->strings_bytes - symbol->st_name))
		return;
	ret->functions[ret->functions_count++] =
		(struct vdso_image_function){ symbol->st_value, symbol->st_value + symbol->st_size,
					      name, ELF64_ST_BIND(symbol->st_info) == STB_WEAK };
}

/* The table of strings follows that of symbols, as linkers lay them. */
static void read_symbols(struct slice image, const struct tables *tables, struct vdso_image *ret)
{
	Elf64_Sym symbol;

	if (!tables->symbols || tables->strings <= tables->symbols || tables->strings > image.len ||
	    tables->strings_bytes > image.len - tables->strings)
		return;
	for (uint64_t at = tables->symbols; at + sizeof(symbol) <= tables->strings;
	     at += sizeof(symbol))
		if (take(image, at, &symbol, sizeof(symbol)))
			add_function(image, tables, &symbol, ret);
}

static void read_dynamic(struct slice image, const Elf64_Phdr *segment, struct vdso_image *ret)
{
	struct tables tables = { 0 };
	uint64_t count = segment->p_filesz / sizeof(Elf64_Dyn);
	Elf64_Dyn entry;

	if (segment->p_offset > image.len)
		return;
	for (uint64_t i = 0; i < count; i++) {
		if (!take(image, segment->p_offset + i * sizeof(entry), &entry, sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_SYMTAB)
			tables.symbols = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRTAB)
			tables.strings = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRSZ)
			tables.strings_bytes = entry.d_un.d_val;
	}
	read_symbols(image, &tables, ret);
}

bool vdso_image_read(struct slice image, struct vdso_image *ret)
{
	struct elf_info info;
	Elf64_Phdr dynamic;

	*ret = (struct vdso_image){ 0 };
	if (elf_parse_info(image, "[vdso]", &info, NULL) || info.id_kind != ELF_ID_GNU)
		return false;
	memcpy(ret->build_id, info.build_id, sizeof(ret->build_id));
	if (find_segment(image, PT_DYNAMIC, &dynamic))
		read_dynamic(image, &dynamic, ret);
	return true;
}

const char *vdso_image_find(const struct vdso_image *vdso, uint64_t offset)
{
	const struct vdso_image_function *found = NULL;

	for (size_t i = 0; i < vdso->functions_count; i++) {
		const struct vdso_image_function *function = &vdso->functions[i];

		if (offset >= function->start && offset < function->end &&
		    (!found || (found->is_weak && !function->is_weak)))
			found = function;
	}
	return found ? found->name : NULL;
}
