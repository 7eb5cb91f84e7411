/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/large_functions.h"

#include <elf.h>
#include <stdlib.h>

#include "agent/unwind/elf_sections.h"
#include "base/mem.h"

struct larges {
	const struct large_function_query *query;
	struct large_function items[LARGE_FUNCTIONS_MAX];
	size_t count;
};

static int note_large(void *context, uint64_t start, uint64_t end, uint64_t cookie)
{
	struct larges *larges = context;

	if (end - start >= larges->query->min && end - start <= larges->query->max &&
	    larges->count < LARGE_FUNCTIONS_MAX)
		larges->items[larges->count++] = (struct large_function){ start, end, cookie };
	return 0;
}

static bool find_in_section(struct cfi *cfi, struct larges *larges, struct large_function *ret)
{
	const struct large_function_query *query = larges->query;
	struct unwind_function_sink functions = { note_large, larges };
	struct err err;

	if (cfi_list(cfi, false, &functions, &err) < 0)
		return false;
	for (size_t i = 0; i < larges->count; i++) {
		if (!query->is_it(query->context, cfi, &larges->items[i]))
			continue;
		*ret = larges->items[i];
		return true;
	}
	return false;
}

bool large_functions_find(const struct elf_exports *symbols,
			  const struct large_function_query *query, struct large_function *ret)
{
	static const struct slice no_image;
	struct elf_layout *layout = mem_new(struct elf_layout);
	struct section_reader *section = mem_new(struct section_reader);
	struct larges *larges = mem_new(struct larges);
	struct cfi *cfi = mem_new(struct cfi);
	struct err err;
	bool found = false;

	larges->query = query;
	if (elf_layout_read(symbols->fd, no_image, query->what, layout, &err) >= 0 &&
	    layout->sections[ELF_SECTION_EH_FRAME].bytes) {
		elf_range_open(symbols->fd, no_image, query->what,
			       &layout->sections[ELF_SECTION_EH_FRAME], section);
		found = cfi_open(cfi, CFI_EH_FRAME, EM_X86_64, section, &err) >= 0 &&
			find_in_section(cfi, larges, ret);
	}
	free(cfi);
	free(larges);
	free(section);
	free(layout);
	return found;
}
