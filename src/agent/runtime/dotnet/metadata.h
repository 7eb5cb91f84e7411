/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata - names of methods by the metadata of their module (ECMA-335, partition II, 22 to 24),
 * read where the process has it. Only the few rows that a name needs are read.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_METADATA_H
#define FIRN_AGENT_RUNTIME_DOTNET_METADATA_H

#include "agent/runtime/code_memory.h"

#define METADATA_TABLES 64
#define METADATA_NAME_MAX 1024

struct metadata {
	uint64_t tables[METADATA_TABLES]; /* addresses */
	uint32_t rows[METADATA_TABLES];
	uint8_t row_bytes[METADATA_TABLES];
	uint64_t strings, strings_bytes;
	bool wide_strings, wide_guids, wide_blobs;
};

/* False when there is no metadata at the address, or in a form that we do not read. */
bool metadata_open(struct code_memory *memory, uint64_t address, struct metadata *ret);

/* The metadata among whose strings the address is, looked for before it. */
bool metadata_find(struct code_memory *memory, uint64_t string, struct metadata *ret);

/* "Namespace.Outer+Inner.Method" of a row of the methods, counted from 1; false = it has none. */
bool metadata_method_name(struct code_memory *memory, const struct metadata *metadata,
			  uint32_t method, char ret[METADATA_NAME_MAX]);

#endif
