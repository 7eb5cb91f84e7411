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

#endif
