/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_layout - offsets in CPython's objects, in bytes, as far as versions differ. Plain data,
 * made by python_file, used by python_code.
 */
#ifndef FIRN_AGENT_RUNTIME_PYTHON_PYTHON_LAYOUT_H
#define FIRN_AGENT_RUNTIME_PYTHON_PYTHON_LAYOUT_H

#include <stdint.h>

#include "agent/bpf/shared.h"

#define PYTHON_VERSION(major, minor) ((major) << 8 | (minor))
#define PYTHON_NO_FIELD 0xffffu

enum python_lines_form {
	PYTHON_LINES_LNOTAB,	/* up to 3.9: differences between lines */
	PYTHON_LINES_RANGES,	/* 3.10: ranges of instructions */
	PYTHON_LINES_LOCATIONS, /* from 3.11: entries of varying length, with columns */
};

struct python_layout {
	uint16_t version; /* PYTHON_VERSION */
	uint16_t type;	  /* of any object */
	/* Of a code object. `qualified_name` is PYTHON_NO_FIELD before 3.11. */
	uint16_t file_name, name, qualified_name, first_line, lines;
	uint16_t bytes_count, bytes_data; /* of a bytes object */
	/* Of text; its data when it is ASCII, and otherwise. */
	uint16_t text_count, text_state, text_ascii, text_wide;
	uint16_t lines_form; /* enum python_lines_form */
	uint64_t code_type;  /* virtual address of PyCode_Type */
};

#endif
