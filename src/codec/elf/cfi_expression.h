/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfi_expression - the DWARF expressions of call frame information that an unwind rule can say.
 *
 * Evaluates with symbols for what is only known while unwinding: registers, the CFA, memory. What
 * compilers and assembly files of distributions contain comes out as one of the forms below;
 * everything else is CFI_VALUE_UNKNOWN. Expressions have no loops here, so the time is bounded by
 * their length. Pure. Terms: DWARF 5, section 2.5.
 */
#ifndef FIRN_CODEC_ELF_CFI_EXPRESSION_H
#define FIRN_CODEC_ELF_CFI_EXPRESSION_H

#include "base/slice.h"

enum cfi_value_kind {
	CFI_VALUE_UNKNOWN,
	CFI_VALUE_CONSTANT,	  /* offset */
	CFI_VALUE_CFA,		  /* CFA + offset */
	CFI_VALUE_AT_CFA,	  /* *(CFA + offset) + add */
	CFI_VALUE_REGISTER,	  /* register + offset */
	CFI_VALUE_SCALED,	  /* 8 * index + offset */
	CFI_VALUE_INDEXED,	  /* register + 8 * index + offset */
	CFI_VALUE_MEMORY,	  /* *(register + offset) + add */
	CFI_VALUE_MEMORY_INDEXED, /* *(register + 8 * index + offset) + add */
	CFI_VALUE_PC_LOW,	  /* pc & 15 */
	CFI_VALUE_PC_REACHED,	  /* (pc & 15) >= add, as 0 or 1 */
	CFI_VALUE_PC_STEP,	  /* (pc & 15) >= add, as 0 or 8 */
	CFI_VALUE_PLT,		  /* register + offset + ((pc & 15) >= add ? 8 : 0) */
};

struct cfi_value {
	enum cfi_value_kind kind;
	uint8_t reg, index; /* DWARF numbers */
	int64_t offset, add;
};

/* DW_CFA_expression and DW_CFA_val_expression start with the CFA on the stack, a CFA's does not. */
struct cfi_value cfi_expression_evaluate(struct slice expression, bool starts_with_cfa);

#endif
