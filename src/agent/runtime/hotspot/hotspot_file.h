/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspot_file - what libjvm says of itself before it runs: the tables of vm_structs as its
 * initialisers will leave them, from the file alone.
 *
 *   relocations -> names of fields, addresses of variables
 *   `movq $value, address(%rip)` in an initialiser -> offsets of fields
 *
 * So the program in the kernel can walk a runtime from its first generated code on
 * (bpf/jvm_find.h). A field whose offset no such instruction sets, or two set differently, is not
 * known, and then the file says nothing: its processes have to be asked (hotspot_process.h).
 */
#ifndef FIRN_AGENT_RUNTIME_HOTSPOT_HOTSPOT_FILE_H
#define FIRN_AGENT_RUNTIME_HOTSPOT_HOTSPOT_FILE_H

#include "agent/bpf/shared.h"
#include "agent/runtime/hotspot/vm_structs.h"

#define HOTSPOT_FILE_DATA_MAX ((uint64_t)32 << 20)
#define HOTSPOT_FILE_CODE_MAX ((uint64_t)8 << 20) /* of initialisers */
#define HOTSPOT_FILE_INITIALISERS_MAX 16384u

/* False when the file does not say all of it. */
bool hotspot_file_read(const struct elf_exports *exports, const struct vm_symbols *symbols,
		       struct jvm_file *ret);

#endif
