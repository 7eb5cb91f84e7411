/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_lines - from a place in the instructions of a CPython function to its line.
 *
 * The table has three forms, by version (python_layout.h). The bytes are hostile: decoding ends
 * with them, and impossible lines become 0.
 */
#ifndef FIRN_AGENT_RUNTIME_PYTHON_PYTHON_LINES_H
#define FIRN_AGENT_RUNTIME_PYTHON_PYTHON_LINES_H

#include "agent/runtime/python/python_layout.h"
#include "base/slice.h"

/*
 * `position` as the program in the kernel gives it: bytes from the first instruction on, up to 3.9
 * and from 3.11; the instruction's number in 3.10. Before the first instruction it is the first
 * line's. 0 = the table says that there is none, or makes no sense.
 */
uint32_t python_line(struct slice table, enum python_lines_form form, uint32_t first_line,
		     int32_t position);

#endif
