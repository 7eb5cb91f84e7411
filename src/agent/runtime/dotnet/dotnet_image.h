/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnet_image - a ready-to-run image where a process has it mapped: its table of functions, and
 * which methods they belong to. (docs/design/coreclr/botr/readytorun-format.md of dotnet/runtime.)
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_DOTNET_IMAGE_H
#define FIRN_AGENT_RUNTIME_DOTNET_DOTNET_IMAGE_H

#include "agent/runtime/code_memory.h"

#define DOTNET_IMAGE_FUNCTIONS_MAX (1u << 20)

struct dotnet_image {
	uint64_t section; /* where it was looked for */
	uint64_t base;	  /* 0 = it is none */
	uint64_t functions;
	uint32_t functions_count;
	uint32_t *methods; /* by function: the row of the method that begins there; 0 = none */
};

/* A function; addresses are relative to the image. */
struct dotnet_runtime_function {
	uint32_t begin, end, unwind;
};

/* The image that begins at `start`, into *ret; base stays 0 when there is none. */
void dotnet_image_read(struct code_memory *memory, uint64_t start, struct dotnet_image *ret);
void dotnet_image_fini(struct dotnet_image *image);

/* The function around the address, and its number; false = there is none. */
bool dotnet_image_find(struct code_memory *memory, const struct dotnet_image *image,
		       uint64_t address, struct dotnet_runtime_function *ret, uint32_t *ret_number);

#endif
