/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vm_structs - the tables in which HotSpot describes its own structures (gHotSpotVMStructs,
 * gHotSpotVMTypes), read out of a process: fields' offsets, roots' addresses, types' sizes.
 *
 * libjvm exports the places of the tables, the size of an entry, and the offsets in it. Bounds:
 * VM_STRUCTS_MAX entries of each table, names of VM_STRUCTS_NAME_MAX bytes.
 */
#ifndef FIRN_AGENT_RUNTIME_HOTSPOT_VM_STRUCTS_H
#define FIRN_AGENT_RUNTIME_HOTSPOT_VM_STRUCTS_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/memory_reader.h"

#define VM_STRUCTS_MAX 8192u
#define VM_STRUCTS_NAME_MAX 128u

/* Exported variables. */
enum vm_symbol {
	VM_STRUCTS,
	VM_STRUCTS_STRIDE,
	VM_STRUCTS_TYPE,
	VM_STRUCTS_FIELD,
	VM_STRUCTS_IS_STATIC,
	VM_STRUCTS_OFFSET,
	VM_STRUCTS_ADDRESS,
	VM_TYPES,
	VM_TYPES_STRIDE,
	VM_TYPES_NAME,
	VM_TYPES_SIZE,
	VM_SYMBOLS
};

/* Their virtual addresses. */
struct vm_symbols {
	uint64_t at[VM_SYMBOLS];
};

/* False when the file lacks one. */
bool vm_symbols_find(const struct elf_exports *exports, struct vm_symbols *ret);

/* A field that is wanted, or with `field` NULL the size of a type. */
struct vm_wanted {
	const char *type, *field;
	bool found, is_static;
	uint64_t value; /* offset, address or size */
	uint64_t at;	/* where the value was read */
};

/* `bias` is what virtual addresses are moved by. False when the tables could not be read. */
bool vm_structs_read(const struct memory_reader *memory, uint64_t bias,
		     const struct vm_symbols *symbols, struct vm_wanted *wanted, size_t count);

#endif
