/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspot_process - where a running HotSpot keeps its generated code, and how its structures lie,
 * by its own tables (vm_structs).
 */
#ifndef FIRN_AGENT_RUNTIME_HOTSPOT_HOTSPOT_PROCESS_H
#define FIRN_AGENT_RUNTIME_HOTSPOT_HOTSPOT_PROCESS_H

#include "agent/runtime/hotspot/hotspot_layout.h"
#include "agent/runtime/hotspot/vm_structs.h"

enum hotspot_state {
	HOTSPOT_READY,	 /* or has a problem, which stays */
	HOTSPOT_NOT_YET, /* it is being started: to be asked again */
};

enum hotspot_state hotspot_process_read(const struct memory_reader *memory, uint64_t bias,
					const struct vm_symbols *symbols,
					struct hotspot_process *ret);

/* A library that does not run. `is_set`: whether the word at an address is as it will be. */
struct hotspot_source {
	struct memory_reader memory;
	bool (*is_set)(void *context, uint64_t address); /* context: the memory's */
};

/*
 * The same of a library's file, at its own addresses: sets roots and layout. False when it does
 * not say all of it. Up to 8, whose code is in one heap, it never does.
 */
bool hotspot_process_read_file(const struct hotspot_source *source,
			       const struct vm_symbols *symbols, struct jvm_file *ret);

#endif
