/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c_library - which C library a process has, as an interpreter finds its thread's state by it
 * (bpf/thread_keys.h). musl is known by its entry point and by what it exports, not by its name:
 * it may be in the file that also is the dynamic linker, or in the program. Where it keeps the
 * values of keys, the code of its pthread_getspecific says. Any other is taken for glibc.
 */
#ifndef FIRN_AGENT_RUNTIME_C_LIBRARY_H
#define FIRN_AGENT_RUNTIME_C_LIBRARY_H

#include "codec/elf/elf.h"

struct space;

/*
 * Where musl's threads have the address of their keys' values (keys_at of struct script_process),
 * if that is musl; 0 = it is not. Reads a few bytes of any other file.
 */
uint16_t c_library_read(int fd, const struct elf_info *info);

/* The same by code of pthread_getspecific (x86-64); 0 = it is none that we know. */
uint16_t c_library_parse_keys(const uint8_t *code, size_t len);

/*
 * The same of a process, by the files that it has mapped; they are opened one after the other. True
 * if that does not change any more.
 */
bool c_library_of(const struct space *space, uint16_t *ret_keys_at);

#endif
