/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnet_sections - the ranges of addresses that CoreCLR has code in: heaps of compiled methods,
 * ready-to-run images, and stubs. From a tree of five levels of 256 pointers each, as of .NET 8.
 *
 * Bounds: DOTNET_SECTIONS_MAX, and as many reads as that takes.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_DOTNET_SECTIONS_H
#define FIRN_AGENT_RUNTIME_DOTNET_DOTNET_SECTIONS_H

#include "agent/runtime/dotnet/dotnet_layout.h"

#define DOTNET_SECTIONS_MAX 8192u

enum dotnet_section_kind { DOTNET_IMAGE, DOTNET_HEAP, DOTNET_STUBS };

struct dotnet_section {
	uint64_t start, end;
	enum dotnet_section_kind kind;
	uint64_t object; /* the heap, the image's module */
};

struct dotnet_sections {
	struct dotnet_section *items; /* by start */
	size_t count, capacity;
};

void dotnet_sections_read(struct code_memory *memory, const struct dotnet_layout *layout,
			  uint64_t map, struct dotnet_sections *ret);
void dotnet_sections_fini(struct dotnet_sections *sections);

/* NULL = none is around the address. */
const struct dotnet_section *dotnet_sections_find(const struct dotnet_sections *sections,
						  uint64_t address);

#endif
