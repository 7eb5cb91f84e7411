/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: System V psABI x86-64, 5.2 (PLT); lld's ELF/Arch/X86_64.cpp and AArch64.cpp; GNU ld's
 * bfd/elf64-x86-64.c, whose unwind information these rows repeat.
 */
#include "agent/unwind/plt_rows.h"

#include <assert.h>
#include <elf.h>

#define X86_FIRST_PUSHED_AT 6 /* pushq GOT+8(%rip) */
#define X86_ENTRY_BYTES 16
#define X86_PUSHED_AT 11    /* jmp *GOT(%rip); push $n */
#define X86_IBT_PUSHED_AT 9 /* endbr64; push $n */
#define ARM64_ADRP 0x90	    /* of the instruction's highest byte */
#define ARM64_ADRP_MASK 0x9f
#define ARM64_FIRST_BYTES 32 /* stp x16, x30, [sp, #-16]!; ...; br x17; nops */

struct pattern {
	uint8_t at, len;
	uint8_t bytes[5];
};

static bool matches(const uint8_t *code, size_t len, const struct pattern *pattern)
{
	return len >= (size_t)pattern->at + pattern->len &&
	       !memcmp(code + pattern->at, pattern->bytes, pattern->len);
}

static enum plt_form x86_form(bool is_lazy, const uint8_t *code, size_t len)
{
	static const struct pattern first = { 0, 2, { 0xff, 0x35 } };
	static const struct pattern entry_jump = { 16, 2, { 0xff, 0x25 } };
	static const struct pattern entry_push = { 22, 1, { 0x68 } };
	static const struct pattern ibt = { 16, 5, { 0xf3, 0x0f, 0x1e, 0xfa, 0x68 } };
	static const struct pattern jump = { 0, 2, { 0xff, 0x25 } };
	static const struct pattern ibt_start = { 0, 4, { 0xf3, 0x0f, 0x1e, 0xfa } };

	if (is_lazy && matches(code, len, &first)) {
		if (matches(code, len, &entry_jump) && matches(code, len, &entry_push))
			return PLT_X86_LAZY;
		return matches(code, len, &ibt) ? PLT_X86_LAZY_IBT : PLT_UNKNOWN;
	}
	return matches(code, len, &jump) || matches(code, len, &ibt_start) ? PLT_DIRECT
									   : PLT_UNKNOWN;
}

enum plt_form plt_form_of(uint16_t machine, bool is_lazy, const uint8_t *code, size_t len)
{
	static const struct pattern push = { 0, 4, { 0xf0, 0x7b, 0xbf, 0xa9 } };
	static const struct pattern landing_push = { 4, 4, { 0xf0, 0x7b, 0xbf, 0xa9 } };

	if (machine == EM_X86_64)
		return x86_form(is_lazy, code, len);
	if (is_lazy && matches(code, len, &push))
		return PLT_ARM64_LAZY;
	if (is_lazy && matches(code, len, &landing_push))
		return PLT_ARM64_LAZY_BTI;
	return len >= 4 && (code[3] & ARM64_ADRP_MASK) == ARM64_ADRP ? PLT_DIRECT : PLT_UNKNOWN;
}

static int give(const struct unwind_row_sink *sink, uint64_t address, uint16_t machine,
		uint8_t kind, int32_t offset, int8_t extra)
{
	struct unwind_rule rule = { .cfa = kind, .cfa_offset = offset, .cfa_extra = extra };

	rule.fp = UNWIND_VALUE_SAME;
	if (machine == EM_X86_64) {
		rule.cfa_register = UNWIND_X86_SP;
		rule.ra = UNWIND_VALUE_AT_CFA;
		rule.ra_offset = -8;
	} else {
		rule.cfa_register = UNWIND_ARM64_SP;
		rule.ra = offset ? UNWIND_VALUE_AT_CFA : UNWIND_VALUE_SAME;
		rule.ra_offset = offset ? -8 : 0;
	}
	return sink->row(sink->context, address, &rule);
}

int plt_rows(uint16_t machine, enum plt_form form, uint64_t start,
	     const struct unwind_row_sink *sink)
{
	int8_t pushed_at = form == PLT_X86_LAZY ? X86_PUSHED_AT : X86_IBT_PUSHED_AT;
	int status;

	assert(sink->row);
	switch (form) {
	case PLT_X86_LAZY:
	case PLT_X86_LAZY_IBT:
		/* The first entry is jumped to by the others, which have pushed a number. */
		status = give(sink, start, machine, UNWIND_CFA_REGISTER, 16, 0);
		if (!status)
			status = give(sink, start + X86_FIRST_PUSHED_AT, machine,
				      UNWIND_CFA_REGISTER, 24, 0);
		if (!status)
			status = give(sink, start + X86_ENTRY_BYTES, machine, UNWIND_CFA_PLT, 8,
				      pushed_at);
		return status;
	case PLT_ARM64_LAZY:
	case PLT_ARM64_LAZY_BTI:
		status = give(sink, start, machine, UNWIND_CFA_REGISTER, 0, 0);
		if (!status)
			status = give(sink, start + (form == PLT_ARM64_LAZY ? 4 : 8), machine,
				      UNWIND_CFA_REGISTER, 16, 0);
		if (!status)
			status = give(sink, start + ARM64_FIRST_BYTES, machine, UNWIND_CFA_REGISTER,
				      0, 0);
		return status;
	default:
		return give(sink, start, machine, UNWIND_CFA_REGISTER, machine == EM_X86_64 ? 8 : 0,
			    0);
	}
}
