/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/split_pack.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/whole_file.h"
#include "codec/elf/section_reader.h"
#include "server/resolve/table/spill.h"
#include "server/resolve/read/split_unit.h"

#define INDEX_DWARF_5 5u
#define INDEX_GNU 2u
#define DWARF_64 UINT32_MAX /* the first four bytes of what has 64-bit offsets */

enum part { PART_INFO, PART_ABBREV, PART_STR_OFFSETS, PART_RANGES, PART_STR, PARTS };
#define PARTS_INDEXED PART_STR /* texts are all units' */

static const char *const part_names[PARTS] = {
	[PART_INFO] = ".debug_info.dwo",
	[PART_ABBREV] = ".debug_abbrev.dwo",
	[PART_STR_OFFSETS] = ".debug_str_offsets.dwo",
	[PART_RANGES] = ".debug_rnglists.dwo",
	[PART_STR] = ".debug_str.dwo",
};
/* DW_SECT_... of the index's columns. */
static const uint32_t columns[PARTS_INDEXED] = { 1, 3, 6, 8 };

#define INDEX_NAME ".debug_cu_index"
#define NAMES_NAME ".shstrtab"

/* Where a unit's parts are. */
struct packed_unit {
	uint64_t id;
	uint32_t offsets[PARTS_INDEXED], bytes[PARTS_INDEXED];
};

struct packer {
	struct spill parts[PARTS];
	struct packed_unit *units;
	size_t count, capacity;
	bool is_dwarf_5;
	char *directory; /* of the program */
};

static void put(struct spill *spill, const void *data, size_t len)
{
	strbuf_add(spill_open(spill), data, len);
	spill_added(spill);
}

static bool is_dwarf_64(struct slice unit)
{
	return unit.len >= 12 && section_u32((const uint8_t *)unit.data) == DWARF_64;
}

/* The compilation itself: its file may have units of types besides, which have no code. */
static struct slice own_info(const struct split_unit *unit)
{
	Dwarf_Die *die = (Dwarf_Die *)(uintptr_t)&unit->die;
	uint64_t start = dwarf_dieoffset(die) - dwarf_cuoffset(die);
	struct slice rest = slice_tail(unit->info, start < unit->info.len ? start : unit->info.len);
	uint64_t head = is_dwarf_64(rest) ? 12 : 4, len = 0;

	if (rest.len >= head)
		len = head + (head == 4 ? section_u32((const uint8_t *)rest.data)
					: section_u64((const uint8_t *)rest.data + 4));
	return slice_from(rest.data, len < rest.len ? len : rest.len);
}

/* Offsets of texts, moved by where the unit's texts begin in the package. */
static void put_text_offsets(struct packer *packer, const struct split_unit *unit, bool is_dwarf_5,
			     uint64_t base)
{
	struct spill *out = &packer->parts[PART_STR_OFFSETS];
	const uint8_t *at = (const uint8_t *)unit->str_offsets.data;
	const uint8_t *end = at + unit->str_offsets.len;
	bool is_64 = is_dwarf_64(is_dwarf_5 ? unit->str_offsets : unit->info);
	size_t head = is_dwarf_5 ? (is_64 ? 16 : 8) : 0, each = is_64 ? 8 : 4;

	if ((size_t)(end - at) < head)
		return;
	put(out, at, head);
	for (at += head; (size_t)(end - at) >= each; at += each) {
		uint64_t moved = base + (is_64 ? section_u64(at) : section_u32(at));
		const uint64_t little = htole64(moved);

		put(out, &little, each);
	}
}

static int add_unit(struct packer *packer, const struct split_unit *unit,
		    const struct split_skeleton *skeleton, struct err *err)
{
	const struct slice pieces[PARTS] = {
		[PART_INFO] = own_info(unit),
		[PART_ABBREV] = unit->abbrev,
		[PART_RANGES] = unit->ranges,
		[PART_STR] = unit->str,
	};
	uint64_t base = spill_len(&packer->parts[PART_STR]), starts[PARTS];
	struct packed_unit *packed;

	for (int part = 0; part < PARTS; part++)
		starts[part] = spill_len(&packer->parts[part]);
	for (int part = 0; part < PARTS; part++)
		if (part != PART_STR_OFFSETS)
			put(&packer->parts[part], pieces[part].data, pieces[part].len);
	put_text_offsets(packer, unit, skeleton->is_dwarf_5, base);
	mem_grow(packer->units, packer->count, packer->capacity);
	packed = &packer->units[packer->count++];
	packed->id = skeleton->id;
	packer->is_dwarf_5 |= skeleton->is_dwarf_5;
	for (int part = 0; part < PARTS; part++) {
		uint64_t end = spill_len(&packer->parts[part]);

		if (end > UINT32_MAX)
			return err_set(err, ERR_LIMIT, "pack split DWARF: %s has more than 4 GiB",
				       part_names[part]);
		if (part < PARTS_INDEXED) {
			packed->offsets[part] = (uint32_t)starts[part];
			packed->bytes[part] = (uint32_t)(end - starts[part]);
		}
	}
	return 0;
}

static struct slice text_of(Dwarf_Die *unit, unsigned name, unsigned old_name)
{
	Dwarf_Attribute attribute;
	const char *text = NULL;

	if (dwarf_attr(unit, name, &attribute) ||
	    (old_name && dwarf_attr(unit, old_name, &attribute)))
		text = dwarf_formstring(&attribute);
	return slice_of(text ? text : "");
}

static bool read_skeleton(Dwarf_CU *cu, Dwarf_Die *unit, struct split_skeleton *ret)
{
	Dwarf_Attribute id;
	Dwarf_Half version;
	uint8_t type;

	*ret = (struct split_skeleton){
		.name = text_of(unit, DW_AT_dwo_name, DW_AT_GNU_dwo_name),
		.directory = text_of(unit, DW_AT_comp_dir, 0),
		.addresses = SLICE_LITERAL(""),
	};
	if (!ret->name.len || dwarf_cu_info(cu, &version, &type, NULL, NULL, &ret->id, NULL, NULL))
		return false;
	ret->is_dwarf_5 = version >= 5;
	return ret->is_dwarf_5 ||
	       (dwarf_attr(unit, DW_AT_GNU_dwo_id, &id) && !dwarf_formudata(&id, &ret->id));
}

static int add_units(struct packer *packer, Dwarf *dwarf, struct split_pack_report *report,
		     struct err *err)
{
	const struct split_places places = { .directory = packer->directory };
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	int rc = 0;

	while (!rc && !dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &die, NULL)) {
		struct split_skeleton skeleton;
		struct split_unit unit;

		if (!read_skeleton(cu, &die, &skeleton))
			continue;
		report->named++;
		if (split_unit_open(&unit, &places, &skeleton, NULL)) {
			report->missing++;
			continue;
		}
		rc = add_unit(packer, &unit, &skeleton, err);
		split_unit_close(&unit);
	}
	return rc;
}

/* The index: a hash table of ids, then offsets and lengths of their parts. */
static void write_index(const struct packer *packer, struct strbuf *out)
{
	uint32_t slots = 2, *rows;

	while (slots < packer->count * 3 / 2 + 1)
		slots *= 2;
	rows = mem_new_array(uint32_t, slots);
	for (uint32_t i = 0; i < packer->count; i++) {
		uint64_t id = packer->units[i].id;
		uint32_t at = (uint32_t)id & (slots - 1);
		uint32_t step = ((uint32_t)(id >> 32) & (slots - 1)) | 1;

		while (rows[at])
			at = (at + step) & (slots - 1);
		rows[at] = i + 1;
	}
	strbuf_add_u32(out, packer->is_dwarf_5 ? INDEX_DWARF_5 : INDEX_GNU);
	strbuf_add_u32(out, PARTS_INDEXED);
	strbuf_add_u32(out, (uint32_t)packer->count);
	strbuf_add_u32(out, slots);
	for (uint32_t i = 0; i < slots; i++)
		strbuf_add_u64(out, rows[i] ? packer->units[rows[i] - 1].id : 0);
	for (uint32_t i = 0; i < slots; i++)
		strbuf_add_u32(out, rows[i]);
	for (int part = 0; part < PARTS_INDEXED; part++)
		strbuf_add_u32(out, columns[part]);
	for (size_t i = 0; i < packer->count; i++)
		for (int part = 0; part < PARTS_INDEXED; part++)
			strbuf_add_u32(out, packer->units[i].offsets[part]);
	for (size_t i = 0; i < packer->count; i++)
		for (int part = 0; part < PARTS_INDEXED; part++)
			strbuf_add_u32(out, packer->units[i].bytes[part]);
	free(rows);
}

/* An ELF file as it is written: sections one behind the other, their headers at the end. */
struct image {
	Elf64_Shdr headers[PARTS + 3]; /* none, the parts, the index, names */
	unsigned count;
	struct strbuf names;
	uint64_t at;
	int fd, error; /* a negative errno */
};

static void write_bytes(struct image *image, struct slice bytes)
{
	if (!image->error)
		image->error = whole_file_write(image->fd, bytes);
	image->at += bytes.len;
}

static void write_section(struct image *image, const char *name, uint32_t type, struct slice bytes)
{
	image->headers[image->count++] = (Elf64_Shdr){
		.sh_name = (uint32_t)image->names.len,
		.sh_type = type,
		.sh_offset = image->at,
		.sh_size = bytes.len,
		.sh_addralign = 1,
	};
	strbuf_add(&image->names, name, strlen(name) + 1);
	write_bytes(image, bytes);
}

static int write_image(struct packer *packer, int out_fd, struct err *err)
{
	struct image image = { .count = 1, .fd = out_fd };
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_REL,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(header),
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	struct strbuf index = { 0 }, names = { 0 };
	int rc = 0;

	strbuf_add_byte(&image.names, 0);
	write_bytes(&image, slice_from(&header, sizeof(header)));
	for (int part = 0; !rc && part < PARTS; part++) {
		const uint8_t *bytes;

		rc = spill_finish(&packer->parts[part], &bytes, err);
		if (!rc)
			write_section(&image, part_names[part], SHT_PROGBITS,
				      slice_from(bytes, spill_len(&packer->parts[part])));
	}
	write_index(packer, &index);
	write_section(&image, INDEX_NAME, SHT_PROGBITS, strbuf_slice(&index));
	strbuf_add_slice(&names, strbuf_slice(&image.names));
	strbuf_add(&names, NAMES_NAME, sizeof(NAMES_NAME));
	write_section(&image, NAMES_NAME, SHT_STRTAB, strbuf_slice(&names));
	header.e_shoff = image.at;
	header.e_shnum = (uint16_t)image.count;
	header.e_shstrndx = (uint16_t)(image.count - 1);
	write_bytes(&image, slice_from(image.headers, image.count * sizeof(Elf64_Shdr)));
	if (!rc && !image.error &&
	    pwrite(out_fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		image.error = -errno;
	if (!rc && image.error)
		rc = err_set_errno(err, -image.error, "write a package of split DWARF");
	strbuf_free(&image.names);
	strbuf_free(&index);
	strbuf_free(&names);
	return rc;
}

static int open_spills(struct packer *packer, struct err *err)
{
	int rc = 0;

	for (int part = 0; part < PARTS; part++) {
		int fd = rc ? -1 : spill_file(P_tmpdir, err);

		if (fd < 0 && !rc)
			rc = fd;
		spill_init(&packer->parts[part], fd);
	}
	return rc;
}

static void close_packer(struct packer *packer)
{
	for (int part = 0; part < PARTS; part++) {
		int fd = packer->parts[part].fd;

		spill_free(&packer->parts[part]);
		if (fd >= 0)
			close(fd);
	}
	free(packer->units);
	free(packer->directory);
}

int split_pack_write(int fd, const char *path, int out_fd, struct split_pack_report *ret,
		     struct err *err)
{
	const char *slash = strrchr(path, '/');
	struct packer packer = { .count = 0 };
	struct split_pack_report report = { 0 };
	Dwarf *dwarf;
	int rc = open_spills(&packer, err);

	packer.directory =
		slash ? mem_strndup(path, (size_t)(slash - path) + 1) : mem_strndup(".", 1);
	elf_version(EV_CURRENT);
	dwarf = rc ? NULL : dwarf_begin(fd, DWARF_C_READ);
	if (dwarf)
		rc = add_units(&packer, dwarf, &report, err);
	dwarf_end(dwarf);
	if (!rc && packer.count)
		rc = write_image(&packer, out_fd, err);
	close_packer(&packer);
	if (!rc)
		*ret = report;
	return rc;
}
