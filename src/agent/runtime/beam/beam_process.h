/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beam_process - names the code of a process that runs Erlang, by address.
 *
 *   index of active code -> table of modules -> header -> functions -> module, function, arity
 *                                                      -> lines -> file, line
 *
 * Each look reads the table of modules and finds the wanted addresses in it. A place whose module
 * has left the table is forgotten, because other code may come there.
 *
 * Bounds: BEAM_MODULES_MAX, BEAM_FUNCTIONS_MAX of each, BEAM_PLACES_MAX. One thread at a time.
 */
#ifndef FIRN_AGENT_RUNTIME_BEAM_BEAM_PROCESS_H
#define FIRN_AGENT_RUNTIME_BEAM_BEAM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/beam/beam_layout.h"
#include "agent/runtime/memory_reader.h"

#define BEAM_MODULES_MAX 65536u
#define BEAM_FUNCTIONS_MAX 65536u
#define BEAM_PLACES_MAX 65536u

struct beam_place {
	uint64_t address;
	uint64_t start, end; /* of its module */
	char *function;	     /* "lists:map/2", "Enum.map/2"; NULL = it is in no function */
	char *file;	     /* "lists.erl"; "" = not known */
	uint32_t line;	     /* 0 = not known */
};

struct beam_process;

struct beam_process *beam_process_new(const struct beam_layout *layout, uint64_t bias);
void beam_process_free(struct beam_process *process); /* accepts NULL */

enum beam_answer {
	BEAM_ANSWERED,
	BEAM_NOT_YET, /* it is being started: to be asked again */
	BEAM_UNKNOWN, /* it says something else than we understand */
};

/* Has a look. Once it was answered the process can be walked: beam_process_walk. */
enum beam_answer beam_process_read(struct beam_process *process, const struct memory_reader *memory,
				   const uint64_t *wanted, size_t count);

/* For the program in the kernel; exit is 0 where its code keeps frame pointers. */
struct beam_walk beam_process_walk(const struct beam_process *process);

/* NULL = not looked at. */
const struct beam_place *beam_process_find(const struct beam_process *process, uint64_t address);

size_t beam_process_bytes(const struct beam_process *process);

#endif
