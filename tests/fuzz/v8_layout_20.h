/* SPDX-License-Identifier: Apache-2.0 */
/* V8's objects as in Node.js 20, for memory that is laid out by hand. The kinds are the user's. */
#ifndef FIRN_TESTS_V8_LAYOUT_20_H
#define FIRN_TESTS_V8_LAYOUT_20_H

#include "agent/runtime/v8/v8_layout.h"

#define V8_LAYOUT_20                                                                               \
	.map_type = 12, .text_types = 128, .form_mask = 7, .narrow_mask = 8, .form_cons = 1,       \
	.form_external = 2, .form_sliced = 3, .form_thin = 5, .text_length = 12,                   \
	.text_characters = 16, .cons_first = 16, .cons_second = 24, .sliced_parent = 16,           \
	.sliced_start = 24, .thin_actual = 16, .external_resource = 16, .shared_name = 16,         \
	.shared_script = 32, .scope_flags = 8, .scope_variables = 32,                              \
	.scope_position = V8_NO_FIELD, .scope_kind = 17, .script_name = 16, .script_source = 8,    \
	.script_line = 24, .head_bytes = 16, .head_code = 8, .code_start = 40, .code_size = 56,    \
	.code_deoptimization = 16, .code_positions = 24, .data_literals = 2, .data_function = 6,   \
	.data_inlinings = 7, .position_marks = 1

#endif
