/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_start - where programs, threads and coroutines begin, in files whose unwind information
 * does not say so: the entry point and the C library musl's __clone, which are assembly without
 * any, and glibc's __start_context, whose information is for a caller that it has not. In glibc's
 * clone and clone3 no information is given from the system call up to where the new thread goes
 * another way than the one that called.
 *
 * A walk that arrives there is complete, and must end. The code is recognised.
 */
#ifndef FIRN_AGENT_UNWIND_THREAD_START_H
#define FIRN_AGENT_UNWIND_THREAD_START_H

#include "agent/unwind/elf_sections.h"

#define THREAD_START_CODE_BYTES 24    /* enough of an entry point to tell */
#define THREAD_START_CONTEXT_BYTES 26 /* length of glibc's __start_context on x86-64 */

/* True if the code at e_entry is where a program begins. Libraries have odd values there. */
bool thread_start_is_entry(const struct elf_layout *layout, const uint8_t *code, size_t len);

/* True if that code is musl's: then its __clone may be in the file too. */
bool thread_start_is_musl(uint16_t machine, const uint8_t *code, size_t len);

/*
 * True if a function of THREAD_START_CONTEXT_BYTES is __start_context. makecontext makes it the
 * return address of the first function of a coroutine.
 */
bool thread_start_is_context(uint16_t machine, const uint8_t *code, size_t len);

/* Lengths of the code that thread_start_is_clone knows. */
#define THREAD_START_CLONE_BYTES 10
#define THREAD_START_CLONE_FAR_BYTES 14 /* with a long jump to what handles errors */

/*
 * True if all of the code is a system call that makes a thread, up to where the new one goes
 * another way, which is behind the code: glibc's clone and clone3.
 */
bool thread_start_is_clone(uint16_t machine, const uint8_t *code, size_t len);

/*
 * Searches code (x86-64) for the part of musl's __clone that the new thread runs. ERR_NOT_FOUND.
 * Costs reading all of it, up to 16 MB.
 */
int thread_start_find_clone(struct section_reader *code, uint64_t *ret_offset, uint64_t *ret_bytes,
			    struct err *err);

#endif
