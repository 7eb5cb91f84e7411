/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnet_layout - offsets in CoreCLR's structures, in bytes. Plain data: from dotnet_layout_of for
 * older versions; from 10 on from the runtime's own "data contract" (docs/design/datacontracts in
 * github.com/dotnet/runtime).
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_DOTNET_LAYOUT_H
#define FIRN_AGENT_RUNTIME_DOTNET_DOTNET_LAYOUT_H

#include "agent/runtime/code_memory.h"
#include "agent/runtime/dotnet/mono_layout.h"

/* Virtual addresses in a binary; 0 = the binary does not have it. */
struct dotnet_symbols {
	uint64_t dac;	   /* g_dacTable: its first word is where the map of code ranges is */
	uint64_t contract; /* DotNetRuntimeContractDescriptor */
	uint32_t major;
	struct mono_symbols mono; /* in place of the others */
};

struct dotnet_layout {
	uint16_t section_begin, section_end, section_flags, section_module, section_heap;
	uint16_t heap_end, heap_base, heap_map;
	uint16_t header_method, header_unwinds_count, header_unwinds;
	uint16_t method_flags, method_token, method_chunk_index, method_alignment;
	uint16_t chunk_bytes, chunk_table, chunk_token;
	uint16_t table_module;
	uint16_t module_name;	 /* a string of its metadata */
	uint16_t dynamic_name;	 /* of a dynamic method; 0 = not known */
	uint16_t remainder_bits; /* of a token, that the method has; the chunk has the others */
};

/* False when this version's layout is not known. */
bool dotnet_layout_of(uint32_t major, struct dotnet_layout *ret);

enum dotnet_answer {
	DOTNET_ANSWERED,
	DOTNET_NOT_YET, /* it is being started: to be asked again */
	DOTNET_UNKNOWN, /* it says something else than we understand */
};

#define DOTNET_CONTRACT_BYTES_MAX 65536u

/* By the contract at the address; *ret_map is set to where the map of code ranges is. */
enum dotnet_answer dotnet_contract_read(struct code_memory *memory, uint64_t address,
					struct dotnet_layout *ret, uint64_t *ret_map);

#endif
