/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known_codes - the code objects of a process that were wanted, by key and proof, and what was read
 * of them.
 *
 * One thread at a time. All zeros are none yet. The user bounds them (known_codes_shrink), and adds
 * to `bytes` what an object's text and lines take.
 */
#ifndef FIRN_AGENT_RUNTIME_NAMES_KNOWN_CODES_H
#define FIRN_AGENT_RUNTIME_NAMES_KNOWN_CODES_H

#include "agent/runtime/script_code.h"
#include "base/idmap.h"

enum code_state { CODE_WANTED, CODE_KNOWN, CODE_LOST };

struct known_code {
	uint64_t key; /* its address, mostly: see object_names.c */
	uint32_t proof;
	uint32_t window;      /* that it was last used in */
	uint32_t read_window; /* of a place: when it was read last, ... */
	uint32_t read_after;  /* ... and how many windows later it is read again */
	enum code_state state;
	uint32_t lost; /* copies of it that were gone before they were read */
	struct script_code code;
};

struct known_codes {
	struct known_code *items;
	size_t count, capacity;
	struct idmap map;
	size_t bytes;
};

/* NULL = it was not wanted yet. Valid until the next one is added. */
struct known_code *known_codes_find(const struct known_codes *codes, uint64_t key, uint32_t proof);

/* One that is not there yet; its state is CODE_WANTED. */
struct known_code *known_codes_add(struct known_codes *codes, uint64_t key, uint32_t proof);

/* Keeps those known that were used in the last two windows, or none when they take more bytes. */
void known_codes_shrink(struct known_codes *codes, uint32_t window, size_t bytes_max);

void known_codes_free(struct known_codes *codes);

#endif
