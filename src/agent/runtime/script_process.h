/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_process - what the program in the kernel is told of a process that has an interpreter, by
 * what the interpreter's file says.
 */
#ifndef FIRN_AGENT_RUNTIME_SCRIPT_PROCESS_H
#define FIRN_AGENT_RUNTIME_SCRIPT_PROCESS_H

#include "agent/bpf/shared.h"
#include "agent/procs/process.h"

/* `bias`: what the file's virtual addresses are moved by; `keys_at`: as c_library_of says. */
struct script_process script_process_of(const struct script_process *file,
					const struct process *process, uint64_t bias,
					uint16_t keys_at);

#endif
