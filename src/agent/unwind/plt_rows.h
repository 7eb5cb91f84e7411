/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plt_rows - unwind rows of procedure linkage tables whose linkers write none (lld, gold with some
 * options). Recognises the code of lld and GNU ld on x86-64 and arm64.
 */
#ifndef FIRN_AGENT_UNWIND_PLT_ROWS_H
#define FIRN_AGENT_UNWIND_PLT_ROWS_H

#include "codec/elf/section_reader.h"
#include "codec/elf/unwind_sink.h"

#define PLT_CODE_BYTES 32 /* the first entries, enough to tell the form */

enum plt_form {
	PLT_UNKNOWN,
	PLT_DIRECT, /* jumps only */
	/* x86-64: a first entry that pushes, then entries that push, jump away, by 16 bytes. */
	PLT_X86_LAZY,	    /* jmp; push; jmp */
	PLT_X86_LAZY_IBT,   /* endbr64; push; jmp */
	PLT_ARM64_LAZY,	    /* a first entry of 32 bytes that pushes, then jumps */
	PLT_ARM64_LAZY_BTI, /* the same behind a landing pad */
};

/* `is_lazy`: the section is .plt, whose first entry may be different from the others. */
enum plt_form plt_form_of(uint16_t machine, bool is_lazy, const uint8_t *code, size_t len);

/* The rows of a table at `start`, by ascending address. */
int plt_rows(uint16_t machine, enum plt_form form, uint64_t start,
	     const struct unwind_row_sink *sink);

#endif
