/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind_info - rows of an unwind table (bpf/table.h) from the UNWIND_INFO of a function of .NET.
 *
 * The format is that of Windows on x64 (version 1), with one code more: SET_FPREG_LARGE. It
 * describes prologues only. Epilogues are found in the code: an instruction sets the stack pointer,
 * then all pushed registers are popped, then the function returns or jumps away. Other code would
 * have to look exactly so to be mistaken for one.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_UNWIND_INFO_H
#define FIRN_AGENT_RUNTIME_DOTNET_UNWIND_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNWIND_INFO_HEADER_BYTES 4u
#define UNWIND_INFO_BYTES_MAX (UNWIND_INFO_HEADER_BYTES + 2 * 255)
#define UNWIND_INFO_ROWS_MAX 1024u

struct code_row {
	uint32_t offset; /* in the function */
	uint32_t rule;	 /* of TABLE_ROW; 0 = nothing is known from here on */
};

/* How many bytes an UNWIND_INFO has that begins so. */
size_t unwind_info_bytes(const uint8_t header[UNWIND_INFO_HEADER_BYTES]);

/*
 * The rows of a function by ascending offset, the first at 0; returns how many. 0: the information
 * is not understood. `code_len` may be 0: then there are no rows of epilogues.
 */
size_t unwind_info_rows(const uint8_t *info, size_t info_len, const uint8_t *code, size_t code_len,
			struct code_row ret[UNWIND_INFO_ROWS_MAX]);

#endif
