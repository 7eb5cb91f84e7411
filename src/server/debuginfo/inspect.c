/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/inspect.h"

static const char *const quality_names[DEBUGINFO_QUALITIES] = {
	[DEBUGINFO_NOTHING] = "nothing",    [DEBUGINFO_DYNSYM] = "dynsym",
	[DEBUGINFO_MINI] = "gnu_debugdata", [DEBUGINFO_GOPCLNTAB] = "gopclntab",
	[DEBUGINFO_SYMTAB] = "symtab",	    [DEBUGINFO_DEBUG_INFO] = "debug_info",
};

const char *debuginfo_quality_name(enum debuginfo_quality quality)
{
	return quality < DEBUGINFO_QUALITIES ? quality_names[quality] : "unknown";
}

bool debuginfo_quality_parse(struct slice name, enum debuginfo_quality *ret)
{
	for (int i = 0; i < DEBUGINFO_QUALITIES; i++) {
		if (slice_is(name, quality_names[i])) {
			*ret = (enum debuginfo_quality)i;
			return true;
		}
	}
	return false;
}

static enum debuginfo_quality quality_of(const char *section)
{
	static const struct {
		const char *section;
		enum debuginfo_quality quality;
	} known[] = {
		{ ".debug_info", DEBUGINFO_DEBUG_INFO },
		{ ".zdebug_info", DEBUGINFO_DEBUG_INFO },
		{ ".symtab", DEBUGINFO_SYMTAB },
		{ ".gopclntab", DEBUGINFO_GOPCLNTAB },
		{ ".data.rel.ro.gopclntab", DEBUGINFO_GOPCLNTAB },
		{ ".gnu_debugdata", DEBUGINFO_MINI },
		{ ".dynsym", DEBUGINFO_DYNSYM },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(section, known[i].section))
			return known[i].quality;
	return DEBUGINFO_NOTHING;
}

static void look_at(void *context, const struct elf_section_info *section)
{
	struct debuginfo_inspection *inspection = context;
	enum debuginfo_quality quality = quality_of(section->name);

	if (section->file_bytes && quality > inspection->quality)
		inspection->quality = quality;
}

int debuginfo_inspect(int fd, const char *name, struct debuginfo_inspection *ret, struct err *err)
{
	struct debuginfo_inspection inspection = { .quality = DEBUGINFO_NOTHING };
	struct elf_info info;
	int rc = elf_read_info(fd, name, &info, err);

	if (!rc)
		rc = elf_each_section(fd, name, look_at, &inspection, err);
	if (rc)
		return rc;
	memcpy(inspection.build_id, info.build_id, sizeof(info.build_id));
	inspection.id_kind = info.id_kind;
	inspection.has_offsets = elf_has_offsets(&info);
	*ret = inspection;
	return 0;
}
