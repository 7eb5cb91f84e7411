/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/split_unit.h"

#include <dwarf.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codec/elf/section_reader.h"
#include "server/resolve/read/debug_files.h"

#define SECTION_BYTES_MAX ((uint64_t)1 << 30) /* of one .dwo or package section, unpacked */
#define COLUMNS_MAX 16u
#define GNU_INDEX_VERSION 2u

enum part { PART_INFO, PART_ABBREV, PART_STR, PART_STR_OFFSETS, PART_RANGES, PARTS };

static const char *const part_names[PARTS] = { ".debug_info", ".debug_abbrev", ".debug_str",
					       ".debug_str_offsets", ".debug_rnglists" };

static bool unpack(Elf_Scn *section, const GElf_Shdr *header)
{
	GElf_Chdr compression;

	if (header->sh_size > SECTION_BYTES_MAX)
		return false;
	if (!(header->sh_flags & SHF_COMPRESSED))
		return true;
	return gelf_getchdr(section, &compression) && compression.ch_size <= SECTION_BYTES_MAX &&
	       elf_compress(section, 0, 0) >= 0;
}

/* The bytes of a section by its name and ".dwo"; empty when there is none. */
static struct slice dwo_section(Elf *elf, const char *wanted)
{
	size_t names, len = strlen(wanted);
	Elf_Scn *section = NULL;

	if (elf_getshdrstrndx(elf, &names))
		return SLICE_LITERAL("");
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strncmp(name, wanted, len) ||
		    (strcmp(name + len, ".dwo") && name[len]))
			continue;
		data = unpack(section, &header) ? elf_getdata(section, NULL) : NULL;
		if (data && data->d_buf)
			return slice_from(data->d_buf, data->d_size);
	}
	return SLICE_LITERAL("");
}

/* The column of a part in a package's index, or 0. */
static uint32_t column_of(enum part part, bool is_dwarf_5)
{
	switch (part) {
	case PART_INFO:
		return 1; /* DW_SECT_INFO */
	case PART_ABBREV:
		return 3;
	case PART_STR_OFFSETS:
		return 6;
	case PART_RANGES:
		return is_dwarf_5 ? 8 : 0;
	default:
		return 0;
	}
}

/* The row of a unit in the hash table of an index; 0: none. DWARF 5, 7.3.5.3. */
static uint32_t index_row(const uint8_t *slots, const uint8_t *rows, uint32_t slots_count,
			  uint64_t id)
{
	uint32_t mask = slots_count - 1, at = (uint32_t)id & mask;
	uint32_t step = ((uint32_t)(id >> 32) & mask) | 1;

	for (uint32_t i = 0; i < slots_count; i++, at = (at + step) & mask) {
		uint32_t row = section_u32(rows + 4 * (size_t)at);

		if (!row)
			return 0;
		if (section_u64(slots + 8 * (size_t)at) == id)
			return row;
	}
	return 0;
}

/* Narrows whole sections of a package to the parts of one unit. */
static bool cut_parts(struct slice index, uint64_t id, struct slice parts[PARTS])
{
	const uint8_t *p = (const uint8_t *)index.data, *columns, *offsets, *sizes;
	uint32_t columns_count, units_count, slots_count, row;
	bool is_dwarf_5;
	uint64_t need;

	if (index.len < 16)
		return false;
	is_dwarf_5 = section_u32(p) != GNU_INDEX_VERSION;
	columns_count = section_u32(p + 4);
	units_count = section_u32(p + 8);
	slots_count = section_u32(p + 12);
	need = 16 + 12 * (uint64_t)slots_count + 4 * (uint64_t)columns_count +
	       8 * (uint64_t)columns_count * units_count;
	if (columns_count > COLUMNS_MAX || !slots_count || slots_count & (slots_count - 1) ||
	    need > index.len)
		return false;
	row = index_row(p + 16, p + 16 + 8 * (size_t)slots_count, slots_count, id);
	if (!row || row > units_count)
		return false;
	columns = p + 16 + 12 * (size_t)slots_count;
	offsets = columns + 4 * (size_t)columns_count * row;
	sizes = offsets + 4 * (size_t)columns_count * units_count;
	for (uint32_t i = 0; i < columns_count; i++) {
		uint32_t offset = section_u32(offsets + 4 * (size_t)i);
		uint32_t size = section_u32(sizes + 4 * (size_t)i);

		for (int part = 0; part < PARTS; part++) {
			uint32_t column = column_of((enum part)part, is_dwarf_5);

			if (!column || section_u32(columns + 4 * (size_t)i) != column)
				continue;
			if (offset > parts[part].len || size > parts[part].len - offset)
				return false;
			parts[part] = slice_from(parts[part].data + offset, size);
		}
	}
	return true;
}

static bool add_section(Elf *image, size_t name, struct slice bytes, uint32_t type)
{
	Elf_Scn *section = elf_newscn(image);
	Elf_Data *data = section ? elf_newdata(section) : NULL;
	GElf_Shdr header;

	if (!data || !gelf_getshdr(section, &header))
		return false;
	data->d_buf = (void *)(uintptr_t)bytes.data;
	data->d_size = bytes.len;
	data->d_type = ELF_T_BYTE;
	data->d_align = 1;
	header.sh_name = (GElf_Word)name;
	header.sh_type = type;
	header.sh_size = bytes.len;
	return gelf_update_shdr(section, &header) != 0;
}

/* Made with descriptor `fd`, which libelf wants to have for a file to write; nothing is written. */
static Elf *make_image(int fd, const struct slice parts[PARTS], struct slice addresses)
{
	static const char names[] = "\0.debug_info\0.debug_abbrev\0.debug_str\0.debug_str_offsets\0"
				    ".debug_addr\0.shstrtab";
	static const enum part added[] = { PART_INFO, PART_ABBREV, PART_STR, PART_STR_OFFSETS };
	Elf *image = elf_begin(fd, ELF_C_WRITE, NULL);
	bool is_made = image && gelf_newehdr(image, ELFCLASS64);
	size_t name = 1;
	GElf_Ehdr header;

	for (size_t i = 0; is_made && i < sizeof(added) / sizeof(*added); i++) {
		is_made = add_section(image, name, parts[added[i]], SHT_PROGBITS);
		name += strlen(names + name) + 1;
	}
	is_made = is_made && add_section(image, name, addresses, SHT_PROGBITS);
	name += strlen(names + name) + 1;
	is_made = is_made &&
		  add_section(image, name, slice_from(names, sizeof(names)), SHT_STRTAB) &&
		  gelf_getehdr(image, &header);
	if (is_made) {
		header.e_ident[EI_DATA] = ELFDATA2LSB;
		header.e_shstrndx = 6;
		is_made = gelf_update_ehdr(image, &header) != 0;
	}
	if (!is_made) {
		elf_end(image);
		return NULL;
	}
	return image;
}

/* True if a unit is the wanted one: its header says so, or, before DWARF 5, its entry. */
static bool has_id(Dwarf_CU *cu, Dwarf_Die *die, uint64_t id)
{
	Dwarf_Attribute attribute;
	uint64_t found = 0;
	uint8_t type;

	if (dwarf_cu_info(cu, NULL, &type, NULL, NULL, &found, NULL, NULL))
		return false;
	if (dwarf_attr(die, DW_AT_GNU_dwo_id, &attribute) && dwarf_formudata(&attribute, &found))
		return false;
	return found == id;
}

static bool find_die(struct split_unit *unit, uint64_t id)
{
	Dwarf_CU *cu = NULL;

	while (!dwarf_get_units(unit->dwarf, cu, &cu, NULL, NULL, &unit->die, NULL))
		if (dwarf_tag(&unit->die) == DW_TAG_compile_unit && has_id(cu, &unit->die, id))
			return true;
	return false;
}

static bool open_parts(struct split_unit *unit, Elf *elf, int fd, bool is_package,
		       const struct split_skeleton *skeleton)
{
	struct slice parts[PARTS];

	for (int part = 0; part < PARTS; part++)
		parts[part] = dwo_section(elf, part_names[part]);
	if (is_package && !cut_parts(dwo_section(elf, ".debug_cu_index"), skeleton->id, parts))
		return false;
	if (!parts[PART_INFO].len || !parts[PART_ABBREV].len)
		return false;
	unit->image = make_image(fd, parts, skeleton->addresses);
	unit->dwarf = unit->image ? dwarf_begin_elf(unit->image, DWARF_C_READ, NULL) : NULL;
	unit->info = parts[PART_INFO];
	unit->abbrev = parts[PART_ABBREV];
	unit->str = parts[PART_STR];
	unit->str_offsets = parts[PART_STR_OFFSETS];
	unit->ranges = parts[PART_RANGES];
	return unit->dwarf && find_die(unit, skeleton->id);
}

void split_unit_close(struct split_unit *unit)
{
	dwarf_end(unit->dwarf);
	elf_end(unit->image);
	elf_end(unit->file);
	if (unit->fd >= 0)
		close(unit->fd);
	*unit = (struct split_unit){ .fd = -1 };
}

static bool open_file(struct split_unit *unit, const char *path,
		      const struct split_skeleton *skeleton)
{
	unit->fd = debug_files_open(path, NULL);
	if (unit->fd >= 0) {
		unit->file = elf_begin(unit->fd, ELF_C_READ, NULL);
		if (unit->file && elf_kind(unit->file) == ELF_K_ELF &&
		    open_parts(unit, unit->file, unit->fd, false, skeleton))
			return true;
	}
	split_unit_close(unit);
	return false;
}

/* At the path named, from where it was compiled, then beside the binary. */
static bool open_dwo(struct split_unit *unit, const char *directory,
		     const struct split_skeleton *skeleton)
{
	struct slice name = skeleton->name;
	char path[PATH_MAX];
	size_t start = name.len;
	int len;

	if (!name.len || name.len >= PATH_MAX || skeleton->directory.len >= PATH_MAX)
		return false;
	if (name.data[0] == '/')
		len = snprintf(path, sizeof(path), "%.*s", SLICE_FMT(name));
	else
		len = snprintf(path, sizeof(path), "%.*s/%.*s", SLICE_FMT(skeleton->directory),
			       SLICE_FMT(name));
	if (len > 0 && (size_t)len < sizeof(path) && open_file(unit, path, skeleton))
		return true;
	while (start && name.data[start - 1] != '/')
		start--;
	name = slice_tail(name, start);
	len = snprintf(path, sizeof(path), "%s/%.*s", directory, SLICE_FMT(name));
	return len > 0 && (size_t)len < sizeof(path) && open_file(unit, path, skeleton);
}

int split_unit_open(struct split_unit *unit, const struct split_places *places,
		    const struct split_skeleton *skeleton, struct err *err)
{
	*unit = (struct split_unit){ .fd = -1 };
	if (places->package) {
		/* libelf keeps no descriptor of ours: any will do that can be asked about. */
		unit->fd = memfd_create("firn-unit", MFD_CLOEXEC);
		if (unit->fd >= 0 && open_parts(unit, places->package, unit->fd, true, skeleton))
			return 0;
		split_unit_close(unit);
	}
	if (places->directory && open_dwo(unit, places->directory, skeleton))
		return 0;
	return err_set(err, ERR_NOT_FOUND, "find split unit \"%.*s\": in no file",
		       SLICE_FMT(skeleton->name));
}
