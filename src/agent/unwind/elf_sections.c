/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/elf_sections.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>

#include "base/mem.h"

#define SECTIONS_MAX 65536u
#define PROGRAM_HEADERS_MAX 4096u
#define DYNAMIC_ENTRIES_MAX 4096u
#define NAME_BYTES_MAX 32u
#define SEGMENT_TYPE_SFRAME 0x6474e554u /* PT_GNU_SFRAME, newer than Debian 12's <elf.h> */

struct named_section {
	const char *name;
	enum elf_section section;
};

static const struct named_section names[] = {
	{ ".eh_frame", ELF_SECTION_EH_FRAME },
	{ ".eh_frame_hdr", ELF_SECTION_EH_FRAME_HDR },
	{ ".debug_frame", ELF_SECTION_DEBUG_FRAME },
	{ ".gopclntab", ELF_SECTION_GOPCLNTAB },
	{ ".data.rel.ro.gopclntab", ELF_SECTION_GOPCLNTAB },
	{ ".sframe", ELF_SECTION_SFRAME },
	{ ".plt", ELF_SECTION_PLT },
	{ ".plt.sec", ELF_SECTION_PLT_SEC },
	{ ".plt.got", ELF_SECTION_PLT_GOT },
	{ ".iplt", ELF_SECTION_IPLT },
	{ ".go.buildinfo", ELF_SECTION_GO_BUILDINFO },
	{ ".go.module", ELF_SECTION_GO_MODULE },
	{ ".data", ELF_SECTION_DATA },
	{ ".noptrdata", ELF_SECTION_NOPTRDATA },
	{ ".data.rel.ro", ELF_SECTION_DATA_REL_RO },
	{ ".rela", ELF_SECTION_RELA },
	{ ".rela.dyn", ELF_SECTION_RELA_DYN },
};

/* Two windows on the file: headers lie far from what they point to. */
struct readers {
	struct section_reader headers, names;
};

void elf_range_open(int fd, struct slice image, const char *name, const struct elf_range *range,
		    struct section_reader *ret)
{
	uint64_t start = range->offset, bytes = range->bytes;

	if (fd >= 0) {
		section_reader_open_file(ret, fd, start, bytes, range->address, name);
		return;
	}
	if (start > image.len)
		start = image.len;
	if (bytes > image.len - start)
		bytes = image.len - start;
	section_reader_open_memory(ret, slice_from(image.data + start, bytes), range->address,
				   name);
}

static int read_header(struct section_reader *reader, uint64_t offset, void *into, size_t len,
		       struct err *err)
{
	const uint8_t *bytes;
	int status = section_reader_view(reader, offset, len, &bytes, err);

	if (!status)
		memcpy(into, bytes, len);
	return status;
}

/* Files of debug information alone have this segment without its bytes. */
static void read_dynamic(struct readers *readers, const Elf64_Phdr *segment, struct elf_layout *ret)
{
	uint64_t count = segment->p_filesz / sizeof(Elf64_Dyn);

	for (uint64_t i = 0; i < count && i < DYNAMIC_ENTRIES_MAX; i++) {
		Elf64_Dyn entry;

		if (read_header(&readers->names, segment->p_offset + i * sizeof(entry), &entry,
				sizeof(entry), NULL) ||
		    entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_FLAGS_1 && entry.d_un.d_val & DF_1_PIE)
			ret->is_program = true;
	}
}

static struct elf_range range_of_segment(const Elf64_Phdr *segment)
{
	return (struct elf_range){ segment->p_offset, segment->p_filesz, segment->p_vaddr };
}

static int read_segments(struct readers *readers, const Elf64_Ehdr *header, struct elf_layout *ret,
			 struct err *err)
{
	int status = 0;

	for (unsigned i = 0; !status && i < header->e_phnum && i < PROGRAM_HEADERS_MAX; i++) {
		Elf64_Phdr segment;

		status = read_header(&readers->headers,
				     header->e_phoff + (uint64_t)i * sizeof(segment), &segment,
				     sizeof(segment), err);
		if (status)
			return status;
		switch (segment.p_type) {
		case PT_INTERP:
			ret->is_program = true;
			break;
		case PT_DYNAMIC:
			read_dynamic(readers, &segment, ret);
			break;
		case SEGMENT_TYPE_SFRAME:
			ret->sections[ELF_SECTION_SFRAME] = range_of_segment(&segment);
			break;
		case PT_GNU_EH_FRAME:
			ret->sections[ELF_SECTION_EH_FRAME_HDR] = range_of_segment(&segment);
			break;
		}
	}
	return status;
}

static void note_section(const Elf64_Shdr *section, const char *name, struct elf_layout *ret)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i].name, name) != 0)
			continue;
		ret->sections[names[i].section] =
			(struct elf_range){ section->sh_offset, section->sh_size,
					    section->sh_addr };
	}
}

/* Sections are optional, and strippers leave some headers in ruins: what cannot be read is not. */
static int read_sections(struct readers *readers, const Elf64_Ehdr *header, struct elf_layout *ret,
			 struct err *err)
{
	Elf64_Shdr section, strings;
	uint64_t count = header->e_shnum, index = header->e_shstrndx;

	if (!header->e_shoff || header->e_shentsize != sizeof(section) ||
	    read_header(&readers->headers, header->e_shoff, &section, sizeof(section), NULL))
		return 0;
	if (!count) /* gABI 4: too many for the header */
		count = section.sh_size;
	if (index == SHN_XINDEX)
		index = section.sh_link;
	if (count > SECTIONS_MAX || index >= count ||
	    read_header(&readers->headers, header->e_shoff + index * sizeof(strings), &strings,
			sizeof(strings), NULL))
		return 0;
	for (uint64_t i = 1; i < count; i++) {
		char name[NAME_BYTES_MAX] = { 0 };
		const uint8_t *bytes;
		size_t have;
		int status = 0;

		if (read_header(&readers->headers, header->e_shoff + i * sizeof(section), &section,
				sizeof(section), NULL))
			return 0;
		if (section.sh_type == SHT_NOBITS || section.sh_flags & SHF_COMPRESSED ||
		    section.sh_name >= strings.sh_size)
			continue;
		status = section_reader_view_some(&readers->names,
						  strings.sh_offset + section.sh_name,
						  sizeof(name) - 1, &bytes, &have, err);
		if (status)
			return status;
		memcpy(name, bytes, have);
		note_section(&section, name, ret);
	}
	return 0;
}

static int read_layout(struct readers *readers, const char *name, struct elf_layout *ret,
		       struct err *err)
{
	Elf64_Ehdr header;
	int status = read_header(&readers->headers, 0, &header, sizeof(header), err);

	if (status)
		return status;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64))
		return err_set(err, ERR_UNSUPPORTED,
			       "read \"%s\": not an ELF file of 64-bit x86-64 or arm64", name);
	if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
		return err_set(err, ERR_UNSUPPORTED,
			       "read \"%s\": neither a linked program nor a library", name);
	ret->entry = header.e_entry;
	ret->is_program = header.e_type == ET_EXEC;
	status = read_segments(readers, &header, ret, err);
	return status ? status : read_sections(readers, &header, ret, err);
}

int elf_layout_read(int fd, struct slice image, const char *name, struct elf_layout *ret,
		    struct err *err)
{
	struct readers *readers;
	struct elf_range whole = { 0 };
	int status;

	assert(fd >= 0 || image.data);
	*ret = (struct elf_layout){ 0 };
	status = fd < 0 ? elf_parse_info(image, name, &ret->info, err)
			: elf_read_info(fd, name, &ret->info, err);
	if (status)
		return status;
	whole.bytes = ret->info.file_bytes;
	readers = mem_new(struct readers);
	elf_range_open(fd, image, name, &whole, &readers->headers);
	elf_range_open(fd, image, name, &whole, &readers->names);
	status = read_layout(readers, name, ret, err);
	free(readers);
	return status;
}
