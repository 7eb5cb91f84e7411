/* SPDX-License-Identifier: Apache-2.0 */
/* beam_layout - where things are in a binary with Erlang's runtime, and in its structures. */
#ifndef FIRN_AGENT_RUNTIME_BEAM_BEAM_LAYOUT_H
#define FIRN_AGENT_RUNTIME_BEAM_BEAM_LAYOUT_H

#include <stdint.h>

struct beam_layout {
	/* Virtual addresses. */
	uint64_t ranges;      /* of modules: one table for each index of code */
	uint64_t active_code; /* which of them holds */
	uint64_t atoms, exit, key;
	uint64_t frame_layout; /* not 0: with frame pointers */
	/* Bytes. */
	uint32_t current_process;  /* in a scheduler's data */
	uint16_t lines, functions; /* in a module's header */
	uint16_t segments;	   /* in the table of atoms */
};

#endif
