/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/dotnet/mono_rows.h"

#include <stdlib.h>

#include "agent/bpf/shared.h"
#include "base/mem.h"
#include "codec/elf/cfi_program.h"

#define START 0x1000u /* of the code, as the program sees it: a mark of 0 is none */
#define REGISTER_RA 16
#define WORD_BYTES 8
#define CFA_WORDS_MAX 1023
#define FP_SLOTS_MAX 255
#define NEAR_FP_SLOTS_MAX 15
#define LEFT_ROW (1u << 1) /* CFA = rsp + 8 */
#define USUAL_ROW                                                                                  \
	(1u | 2u << 1 | 1u << 11) /* CFA = rbp + 16, and rbp is below the return address */

static const struct cfi_registers registers = {
	.ra = REGISTER_RA,
	.fp = UNWIND_X86_FP,
	/* Not followed: what trampolines say of their caller's, and rbx. */
	.sp = REGISTER_RA,
	.bx = REGISTER_RA,
	.last = REGISTER_RA,
};

/* At the return address, with nothing saved any more, whatever the program says of that. */
static bool is_left(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_REGISTER && rule->cfa_register == UNWIND_X86_SP &&
	       rule->cfa_offset == WORD_BYTES;
}

/*
 * Trampolines copy the caller's registers from a usual frame, and then say that they are in the
 * copies, which are far away.
 */
static bool is_usual_frame(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_REGISTER && rule->cfa_register == UNWIND_X86_FP &&
	       rule->cfa_offset == 2 * WORD_BYTES && rule->ra == UNWIND_VALUE_AT_CFA &&
	       rule->fp == UNWIND_VALUE_AT_CFA;
}

/* 0 = it cannot be said. */
static uint32_t rule_of(const struct unwind_rule *rule)
{
	bool by_fp = rule->cfa_register == UNWIND_X86_FP;
	uint32_t fp_slot = 0, packed;

	if (is_left(rule))
		return LEFT_ROW;
	if (is_usual_frame(rule))
		return USUAL_ROW;
	if (rule->cfa != UNWIND_CFA_REGISTER || (!by_fp && rule->cfa_register != UNWIND_X86_SP) ||
	    rule->ra != UNWIND_VALUE_AT_CFA || rule->ra_offset != -WORD_BYTES ||
	    rule->cfa_offset % WORD_BYTES || rule->cfa_offset < WORD_BYTES ||
	    rule->cfa_offset / WORD_BYTES > CFA_WORDS_MAX)
		return 0;
	if (rule->fp == UNWIND_VALUE_AT_CFA) {
		if (rule->fp_offset % WORD_BYTES || rule->fp_offset > -2 * WORD_BYTES ||
		    rule->fp_offset < -WORD_BYTES * (FP_SLOTS_MAX + 1))
			return 0;
		fp_slot = (uint32_t)(-rule->fp_offset / WORD_BYTES - 1);
	} else if (rule->fp != UNWIND_VALUE_SAME) {
		return 0;
	}
	packed = (uint32_t)by_fp | (uint32_t)(rule->cfa_offset / WORD_BYTES) << 1 | fp_slot << 11;
	return fp_slot > NEAR_FP_SLOTS_MAX ? packed | CODE_RULE_FAR : packed;
}

struct making {
	const struct mono_frame *frame;
	struct mono_rows *rows;
};

static int put_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	const struct making *making = context;
	struct mono_rows *rows = making->rows;
	uint32_t offset = (uint32_t)(address - START), packed = rule_of(rule);

	if (making->frame->end && offset >= making->frame->end && is_left(rule) && !rows->return_at)
		rows->return_at = offset;
	if (rows->count && rows->rows[rows->count - 1].rule == packed)
		return 0;
	if (rows->count == UNWIND_INFO_ROWS_MAX - 1)
		packed = 0; /* there may be more to come */
	if (rows->count < UNWIND_INFO_ROWS_MAX)
		rows->rows[rows->count++] = (struct code_row){ offset, packed };
	return 0;
}

bool mono_rows_make(const struct mono_frame *frame, struct mono_rows *ret)
{
	struct section_reader *reader = mem_new(struct section_reader);
	struct making making = { frame, ret };
	struct unwind_row_sink sink = { put_row, &making };
	enum cfi_program_end end = CFI_PROGRAM_MALFORMED;
	struct cfi_program program = { .registers = &registers,
				       .reader = reader,
				       .end = frame->program_len,
				       .code_align = 1,
				       .data_align = -WORD_BYTES,
				       .address = START,
				       .address_end = START + (uint64_t)frame->code_bytes,
				       .mark = frame->end ? START + (uint64_t)frame->end : 0 };
	struct cfi_state state;
	struct err err;
	int status;

	ret->count = 0;
	ret->return_at = 0;
	section_reader_open_memory(reader, slice_from(frame->program, frame->program_len), 0,
				   "unwind information of Mono");
	cfi_state_init(&state, &registers);
	status = cfi_program_run(&program, &state, &sink, &end, &err);
	free(reader);
	if (status || end != CFI_PROGRAM_DONE || !ret->count)
		ret->count = 0;
	return ret->count;
}
