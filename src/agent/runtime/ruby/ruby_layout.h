/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruby_layout - offsets in Ruby's objects, in bytes, as far as versions differ. Plain data, made by
 * ruby_file, used by ruby_code and ruby_text.
 */
#ifndef FIRN_AGENT_RUNTIME_RUBY_RUBY_LAYOUT_H
#define FIRN_AGENT_RUNTIME_RUBY_RUBY_LAYOUT_H

#include <stdint.h>

#define RUBY_VERSION(major, minor) ((major) << 8 | (minor))

/* Where the name of a class is. */
enum ruby_class_form {
	RUBY_CLASS_UNKNOWN,
	RUBY_CLASS_VARIABLES, /* up to 3.1: among the class's instance variables */
	RUBY_CLASS_FIELD,     /* from 3.3 on: a field of the class */
};

struct ruby_layout {
	uint16_t version; /* RUBY_VERSION */
	/* Of a body of instructions: the table of lines, how many, and the index to it. */
	uint16_t lines, lines_count, lines_index;
	uint16_t line_bytes; /* of an entry */
	uint16_t body_bytes;
	uint16_t text; /* of a short string: its characters */
	uint8_t short_array_bits;
	uint8_t class_form; /* enum ruby_class_form */
	uint32_t singleton; /* flag of a class that belongs to one object */
	uint16_t attached, class_path;
	uint32_t last_operator; /* ids up to it are their own numbers */
	uint64_t symbols;	/* virtual address of the table of ids; 0 = not found */
};

#endif
