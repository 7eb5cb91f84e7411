/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unknown_code - addresses of a process's generated code that samples have, and of which nothing is
 * known yet. Each is there once, UNKNOWN_CODE_MAX at most: others are asked for when they are seen
 * again.
 *
 * One thread at a time. All zeros are none.
 */
#ifndef FIRN_AGENT_RUNTIME_NAMES_UNKNOWN_CODE_H
#define FIRN_AGENT_RUNTIME_NAMES_UNKNOWN_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNKNOWN_CODE_MAX 1024

struct unknown_code {
	uint64_t *items;
	size_t count, capacity;
};

void unknown_code_add(struct unknown_code *code, uint64_t address);

/* Removes those of which something was found out meanwhile. */
void unknown_code_sift(struct unknown_code *code, bool (*is_known)(const void *, uint64_t),
		       const void *context);

/* Empties it: the addresses are the caller's, to be freed; NULL if there are none. */
uint64_t *unknown_code_take(struct unknown_code *code, size_t *ret_count);

void unknown_code_free(struct unknown_code *code);

#endif
