/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mono_rows - rows of an unwind table from what Mono keeps of a method for its own unwinder:
 * instructions of DWARF's call frame information, with one more, which leads to the epilogue.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_MONO_ROWS_H
#define FIRN_AGENT_RUNTIME_DOTNET_MONO_ROWS_H

#include "agent/runtime/dotnet/unwind_info.h"

#define MONO_PROGRAM_BYTES_MAX 4096u

struct mono_frame {
	const uint8_t *program;
	size_t program_len;
	uint32_t code_bytes;
	uint32_t end; /* where the epilogue begins, in the code; 0 = not known */
};

struct mono_rows {
	struct code_row rows[UNWIND_INFO_ROWS_MAX];
	size_t count;
	/* The instruction that should return, by the last row of the epilogue; 0 = there is none.
	 */
	uint32_t return_at;
};

/*
 * The rows by ascending offset, the first at 0; false: the program is not understood, and there are
 * none.
 */
bool mono_rows_make(const struct mono_frame *frame, struct mono_rows *ret);

#endif
