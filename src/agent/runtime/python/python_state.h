/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_state - how a thread's state is found in a binary that has CPython in it.
 *
 * Up to 3.11 it is the value of a pthread key, whose number is in _PyRuntime, and before 3.7 a
 * variable of its own; from 3.12 on a variable of the thread, which is 0 while the thread has given
 * up the interpreter's lock: then the key still has it. The code of small exported functions
 * that read it shows where it is: which word of the global offset table; the relocation of that
 * word shows how.
 */
#ifndef FIRN_AGENT_RUNTIME_PYTHON_PYTHON_STATE_H
#define FIRN_AGENT_RUNTIME_PYTHON_PYTHON_STATE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/python/python_layout.h"
#include "agent/runtime/thread_variable.h"

/*
 * `key_at` is where in _PyRuntime the key is by a table of
 * versions, 0 = not known: the last resort. False when nothing is found. `ret_key` is the key where
 * the variable is another, 0 = none.
 */
bool python_state_find(const struct elf_exports *symbols, const struct elf_export *runtime,
		       uint16_t version, uint64_t key_at, struct thread_variable *ret,
		       uint64_t *ret_key);

#endif
