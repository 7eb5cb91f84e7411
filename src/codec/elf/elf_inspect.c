/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/elf_inspect.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Compilers write about as much DWARF as code, a third of it when compressed, a tenth with -g1.
 * Less than this part of the code means that most of the code has none.
 */
#define DEBUG_PART 32
#define ALTERNATE_BYTES_MAX (4096 + 64)

static const char *const quality_names[ELF_QUALITIES] = {
	[ELF_QUALITY_NOTHING] = "nothing",	 [ELF_QUALITY_DYNSYM] = "dynsym",
	[ELF_QUALITY_MINI] = "gnu_debugdata",	 [ELF_QUALITY_GOPCLNTAB] = "gopclntab",
	[ELF_QUALITY_SYMTAB] = "symtab",	 [ELF_QUALITY_SOME_DEBUG_INFO] = "some_debug_info",
	[ELF_QUALITY_DEBUG_INFO] = "debug_info",
};

const char *elf_quality_name(enum elf_quality quality)
{
	return quality < ELF_QUALITIES ? quality_names[quality] : "unknown";
}

bool elf_quality_parse(struct slice name, enum elf_quality *ret)
{
	for (int i = 0; i < ELF_QUALITIES; i++) {
		if (slice_is(name, quality_names[i])) {
			*ret = (enum elf_quality)i;
			return true;
		}
	}
	return false;
}

static const struct {
	const char *name;
	enum elf_symbol_section bit;
	enum elf_quality quality;
} kinds[] = {
	{ "debug_info", ELF_HAS_DEBUG_INFO, ELF_QUALITY_DEBUG_INFO },
	{ "debug_line", ELF_HAS_DEBUG_LINE, ELF_QUALITY_NOTHING }, /* lines without names */
	{ "symtab", ELF_HAS_SYMTAB, ELF_QUALITY_SYMTAB },
	{ "gopclntab", ELF_HAS_GOPCLNTAB, ELF_QUALITY_GOPCLNTAB },
	{ "gnu_debugdata", ELF_HAS_MINI, ELF_QUALITY_MINI },
	{ "dynsym", ELF_HAS_DYNSYM, ELF_QUALITY_DYNSYM },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

void elf_sections_write(unsigned sections, struct strbuf *out)
{
	bool is_first = true;

	for (size_t i = 0; i < KINDS; i++) {
		if (!(sections & kinds[i].bit))
			continue;
		strbuf_addf(out, "%s%s", is_first ? "" : ",", kinds[i].name);
		is_first = false;
	}
}

bool elf_sections_parse(struct slice text, unsigned *ret)
{
	unsigned sections = 0;

	while (text.len) {
		struct slice name = slice_cut(text, ',', &text);
		size_t i = 0;

		while (i < KINDS && !slice_is(name, kinds[i].name))
			i++;
		if (i == KINDS)
			return false;
		sections |= kinds[i].bit;
	}
	*ret = sections;
	return true;
}

struct look {
	int fd;
	char alternate[ELF_BUILD_ID_TEXT_BYTES];
	unsigned sections;
	enum elf_quality quality;
	uint64_t debug_bytes, code_bytes;
};

/* "debug_info" of ".debug_info", ".zdebug_info"; Go's table has two names. */
static const char *plain_name(const char *section)
{
	if (!strcmp(section, ".data.rel.ro.gopclntab"))
		return "gopclntab";
	if (!strncmp(section, ".zdebug_", 8))
		return section + 2;
	return section[0] == '.' ? section + 1 : "";
}

/* .gnu_debugaltlink (dwz): a file name, a NUL, the bytes of the build id. */
static void read_alternate(struct look *look, const struct elf_section_info *section)
{
	char bytes[ALTERNATE_BYTES_MAX];
	size_t name_bytes, id_bytes;

	if (section->file_bytes > sizeof(bytes) ||
	    pread(look->fd, bytes, section->file_bytes, (off_t)section->offset) !=
		    (ssize_t)section->file_bytes)
		return;
	name_bytes = strnlen(bytes, section->file_bytes) + 1;
	if (name_bytes >= section->file_bytes)
		return;
	id_bytes = section->file_bytes - name_bytes;
	for (size_t i = 0; 2 * id_bytes < sizeof(look->alternate) && i < id_bytes; i++)
		snprintf(look->alternate + 2 * i, 3, "%02x", (unsigned char)bytes[name_bytes + i]);
}

static void look_at(void *context, const struct elf_section_info *section)
{
	const char *name = plain_name(section->name);
	struct look *look = context;

	if (!strcmp(name, "gnu_debugaltlink"))
		read_alternate(look, section);
	if (!strcmp(name, "text"))
		look->code_bytes = section->file_bytes;
	for (size_t i = 0; section->file_bytes && i < KINDS; i++) {
		if (strcmp(name, kinds[i].name) != 0)
			continue;
		look->sections |= kinds[i].bit;
		if (kinds[i].bit & (ELF_HAS_DEBUG_INFO | ELF_HAS_DEBUG_LINE))
			look->debug_bytes += section->file_bytes;
		if (kinds[i].quality > look->quality)
			look->quality = kinds[i].quality;
	}
}

/* A separate debug file has its code's size from the segments alone. */
static uint64_t code_bytes(const struct look *look, const struct elf_info *info)
{
	uint64_t bytes = look->code_bytes;

	for (size_t i = 0; !look->code_bytes && i < info->segments_count; i++)
		if (info->segments[i].executable && info->segments[i].memory_bytes < UINT32_MAX)
			bytes += info->segments[i].memory_bytes;
	return bytes;
}

int elf_inspect(int fd, const char *name, struct elf_inspection *ret, struct err *err)
{
	struct look look = { .fd = fd, .quality = ELF_QUALITY_NOTHING };
	struct elf_info info;
	int rc = elf_read_info(fd, name, &info, err);

	if (!rc)
		rc = elf_each_section(fd, name, look_at, &look, err);
	if (rc)
		return rc;
	if (look.quality == ELF_QUALITY_DEBUG_INFO &&
	    look.debug_bytes < code_bytes(&look, &info) / DEBUG_PART)
		look.quality = ELF_QUALITY_SOME_DEBUG_INFO;
	memcpy(ret->build_id, info.build_id, sizeof(info.build_id));
	memcpy(ret->alternate, look.alternate, sizeof(look.alternate));
	ret->id_kind = info.id_kind;
	ret->quality = look.quality;
	ret->sections = look.sections;
	ret->has_offsets = elf_has_offsets(&info);
	return 0;
}

static void look_at_package(void *context, const struct elf_section_info *section)
{
	unsigned *parts = context;

	*parts |= !strcmp(section->name, ".debug_info.dwo") ? 1u : 0;
	*parts |= !strcmp(section->name, ".debug_cu_index") ? 2u : 0;
}

int elf_inspect_package(int fd, const char *name, struct err *err)
{
	struct elf_info info;
	unsigned parts = 0;
	int rc = elf_read_info(fd, name, &info, err);

	if (!rc)
		rc = elf_each_section(fd, name, look_at_package, &parts, err);
	if (!rc && parts != 3)
		rc = err_set(err, ERR_INVALID,
			     "read \"%s\": not a package of split DWARF (no .debug_cu_index and "
			     ".debug_info.dwo)",
			     name);
	return rc;
}
