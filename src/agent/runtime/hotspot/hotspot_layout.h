/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspot_layout - offsets in HotSpot's structures that reading names needs. Offsets in bytes; made
 * by hotspot_process.
 */
#ifndef FIRN_AGENT_RUNTIME_HOTSPOT_HOTSPOT_LAYOUT_H
#define FIRN_AGENT_RUNTIME_HOTSPOT_HOTSPOT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/bpf/shared.h"

#define HOTSPOT_VERSION_BYTES 16

/* How an nmethod keeps what is known of its instructions. */
enum hotspot_debug_form {
	HOTSPOT_DEBUG_NONE,   /* not known how */
	HOTSPOT_DEBUG_INSIDE, /* in the blob: up to 21 */
	HOTSPOT_DEBUG_APART,  /* in memory of its own: from 25 on */
};

struct hotspot_layout {
	/* of a Method, its ConstMethod, ConstantPool, Klass, Symbol */
	uint16_t const_method, bytecodes, proof; /* as in struct jvm_layout */
	uint16_t constants, method_flags, method_words, code_size, name_index;
	uint16_t pool_holder, pool_source, pool_bytes, pool_length, klass_name;
	uint16_t symbol_length, symbol_text;
	/* of a blob */
	uint16_t blob_name;
	uint16_t code, code_bytes, orig_pc; /* as in struct jvm_layout */
	/* of an nmethod */
	uint16_t method, metadata, pcs, pcs_end, scopes, debug, debug_bytes, mutable_data,
		relocation_bytes;
	uint8_t debug_form;	   /* enum hotspot_debug_form */
	uint8_t scopes_bytes;	   /* 8 = an address, 4 = an offset; of those inside */
	bool has_numbers_from_one; /* no byte of a compressed number is 0 (from 20 on) */
};

struct hotspot_process {
	struct jvm_process walk; /* start_ns and exec_id are left 0 */
	struct hotspot_layout layout;
	char version[HOTSPOT_VERSION_BYTES]; /* "17.0.15+6" */
	const char *problem;		     /* why its frames cannot be read; NULL = they can */
};

#endif
