/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's structures as in Java 17, for memory that is laid out by hand. */
#ifndef FIRN_TESTS_HOTSPOT_LAYOUT_17_H
#define FIRN_TESTS_HOTSPOT_LAYOUT_17_H

#include "agent/runtime/hotspot/hotspot_layout.h"

#define HOTSPOT_LAYOUT_17                                                                          \
	.const_method = 8, .bytecodes = 48, .proof = 32, .constants = 8, .method_flags = 28,       \
	.method_words = 24, .code_size = 32, .name_index = 34, .pool_holder = 24,                  \
	.pool_source = 54, .pool_bytes = 72, .pool_length = 60, .klass_name = 24,                  \
	.symbol_length = 4, .symbol_text = 6, .blob_name = 96, .code = 32, .code_bytes = 8,        \
	.orig_pc = 300, .method = 112, .metadata = 260, .pcs = 268, .pcs_end = 272, .scopes = 120, \
	.scopes_bytes = 8, .debug_form = HOTSPOT_DEBUG_INSIDE

#endif
