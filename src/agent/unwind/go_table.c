/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/go_table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"

/* What it takes to look for something in several places. */
struct search {
	const struct table_input *input;
	const struct elf_layout *layout;
	uint64_t bytes_max; /* looked at in one place */
	struct gopclntab *table;
	struct section_reader place, relocations;
};

static void open_place(struct search *search, const struct elf_range *range,
		       struct section_reader *ret)
{
	struct elf_range part = *range;

	if (part.bytes > search->bytes_max)
		part.bytes = search->bytes_max;
	elf_range_open(search->input->fd, search->input->image, search->input->name, &part, ret);
}

static struct elf_range segment_range(const struct elf_layout *layout, size_t i)
{
	const struct elf_segment *segment = &layout->info.segments[i];

	return (struct elf_range){ segment->offset, segment->file_bytes, segment->address };
}

/* The linker of C programs puts Go's table into .data.rel.ro, with much else. */
static int find_table(struct search *search, struct elf_range *ret, struct err *err)
{
	const struct elf_layout *layout = search->layout;
	int status = -ERR_NOT_FOUND;

	for (size_t i = 0; status == -ERR_NOT_FOUND && i < layout->info.segments_count; i++) {
		struct elf_range range = segment_range(layout, i);
		uint64_t offset;

		open_place(search, &range, &search->place);
		status = gopclntab_find(&search->place, layout->info.machine, &offset, err);
		if (!status)
			*ret = (struct elf_range){ range.offset + offset, range.bytes - offset,
						   range.address + offset };
	}
	return status;
}

static int find_text_in(struct search *search, const struct elf_range *range, struct err *err)
{
	if (!range->bytes)
		return -ERR_NOT_FOUND;
	open_place(search, range, &search->place);
	return gopclntab_find_text(search->table, &search->place,
				   search->relocations.size ? &search->relocations : NULL,
				   &search->table->layout.text, err);
}

static int find_text(struct search *search, struct err *err)
{
	static const enum elf_section places[] = { ELF_SECTION_GO_MODULE, ELF_SECTION_NOPTRDATA,
						   ELF_SECTION_DATA_REL_RO, ELF_SECTION_DATA };
	const struct elf_layout *layout = search->layout;
	const struct elf_range *relocations = &layout->sections[ELF_SECTION_RELA_DYN];
	int status = -ERR_NOT_FOUND;

	if (!relocations->bytes)
		relocations = &layout->sections[ELF_SECTION_RELA];
	open_place(search, relocations, &search->relocations);
	for (size_t i = 0; status == -ERR_NOT_FOUND && i < sizeof(places) / sizeof(places[0]); i++)
		status = find_text_in(search, &layout->sections[places[i]], err);
	for (size_t i = 0; status == -ERR_NOT_FOUND && i < layout->info.segments_count; i++) {
		struct elf_range range = segment_range(layout, i);

		status = find_text_in(search, &range, err);
	}
	if (status == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "search \"%s\": no address of Go's text",
			       search->input->name);
	return status;
}

static int open_table(struct search *search, struct err *err)
{
	struct elf_range range = search->layout->sections[ELF_SECTION_GOPCLNTAB];
	struct gopclntab *table = search->table;
	int status = range.bytes ? 0 : find_table(search, &range, err);

	if (status)
		return status;
	open_place(search, &range, &search->place);
	status = gopclntab_open(table, &search->place, search->layout->info.machine, err);
	if (status || table->layout.text || table->layout.version < GOPCLNTAB_GO_1_18)
		return status;
	return find_text(search, err);
}

static bool is_go(const struct elf_layout *layout)
{
	return layout->sections[ELF_SECTION_GOPCLNTAB].bytes ||
	       layout->sections[ELF_SECTION_GO_BUILDINFO].bytes ||
	       layout->info.id_kind == ELF_ID_GO;
}

int go_table_open(const struct table_input *input, const struct elf_layout *layout,
		  uint64_t bytes_max, struct gopclntab **ret, struct err *err)
{
	struct search *search;
	int status;

	*ret = NULL;
	if (!is_go(layout))
		return 0;
	if (layout->sections[ELF_SECTION_GOPCLNTAB].bytes > bytes_max)
		return err_set(err, ERR_LIMIT,
			       "build the unwind table of \"%s\": a section of %" PRIu64
			       " bytes, at most %" PRIu64 " allowed",
			       input->name, layout->sections[ELF_SECTION_GOPCLNTAB].bytes,
			       bytes_max);
	search = mem_new(struct search);
	search->input = input;
	search->layout = layout;
	search->bytes_max = bytes_max;
	search->table = mem_new(struct gopclntab);
	status = open_table(search, err);
	if (status)
		free(search->table);
	else
		*ret = search->table;
	free(search);
	return status;
}
