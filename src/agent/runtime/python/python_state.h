/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_state - how a thread's state is found in a binary that has CPython in it.
 *
 * Up to 3.11 it is the value of a pthread key, whose number is in _PyRuntime, and before 3.7 a
 * variable of its own; from 3.12 on a variable of the thread, which is 0 while the thread has given
 * up the interpreter's lock: then the key still has it, from 3.15 on another variable of the
 * thread. The code of small exported functions that read it shows where it is: which word of the
 * global offset table; the relocation of that word shows how.
 *
 * The key names the first state of a thread, also while it runs a sub-interpreter. So up to 3.11
 * it is also told which state has the interpreter's lock (bpf/script_python.h).
 */
#ifndef FIRN_AGENT_RUNTIME_PYTHON_PYTHON_STATE_H
#define FIRN_AGENT_RUNTIME_PYTHON_PYTHON_STATE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/python/python_layout.h"
#include "agent/runtime/thread_variable.h"

/* Offsets in _PyRuntime, by a table of versions; 0 = not known. */
struct python_places {
	uint16_t key, current, interpreters;
};

/* Virtual addresses; 0 = there is none. */
struct python_state {
	struct thread_variable named;
	struct thread_variable detached; /* while `named` is 0 */
	uint64_t current, interpreters;	 /* where it is the key: as in struct script_process */
};

/*
 * `places`: NULL = not known; of the key the last resort. False when nothing is found that names
 * a thread's state.
 */
bool python_state_find(const struct elf_exports *symbols, const struct elf_export *runtime,
		       uint16_t version, const struct python_places *places,
		       struct python_state *ret);

#endif
