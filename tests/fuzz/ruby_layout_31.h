/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are in Ruby 3.1, as the debug information of a build has it. */
#ifndef FIRN_TESTS_RUBY_LAYOUT_31_H
#define FIRN_TESTS_RUBY_LAYOUT_31_H

#define RUBY_LAYOUT_31                                                                             \
	.version = RUBY_VERSION(3, 1), .lines = 120, .lines_count = 136, .lines_index = 144,       \
	.line_bytes = 12, .body_bytes = 312, .text = 16, .short_array_bits = 2,                    \
	.class_form = RUBY_CLASS_VARIABLES, .singleton = 1 << 12, .last_operator = 169

#endif
