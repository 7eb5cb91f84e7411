/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/row_rule.h"

#include <string.h>

#define SLOT_BYTES 8
#define CFA_SLOTS_MAX 1023
#define SAVED_SLOTS_MAX 15

/* 0 when the register is unchanged, or when it is saved where that cannot be said. */
static uint32_t saved_slot(uint8_t how, int32_t offset)
{
	if (how != UNWIND_VALUE_AT_CFA || offset > -2 * SLOT_BYTES ||
	    offset < -(SAVED_SLOTS_MAX + 1) * SLOT_BYTES)
		return 0;
	return (uint32_t)(-offset / SLOT_BYTES - 1);
}

bool row_rule_pack(const struct unwind_rule *rule, uint32_t *ret)
{
	int32_t cfa = rule->cfa_offset / SLOT_BYTES;
	struct unwind_rule back;

	if (cfa < 0 || cfa > CFA_SLOTS_MAX)
		return false;
	if (rule->cfa < UNWIND_CFA_REGISTER)
		*ret = (uint32_t)rule->cfa << 11;
	else
		*ret = (rule->cfa_register == UNWIND_X86_FP) | (uint32_t)cfa << 1 |
		       saved_slot(rule->fp, rule->fp_offset) << 11 |
		       saved_slot(rule->bx, rule->bx_offset) << 15;
	back = row_rule_unpack(*ret);
	return !memcmp(&back, rule, sizeof(back));
}

struct unwind_rule row_rule_unpack(uint32_t packed)
{
	struct unwind_rule rule = {
		.cfa = UNWIND_CFA_REGISTER,
		.cfa_register = TABLE_RULE_BY_FP(packed) ? UNWIND_X86_FP : UNWIND_X86_SP,
		.cfa_offset = (int32_t)TABLE_RULE_CFA(packed) * SLOT_BYTES,
		.ra = UNWIND_VALUE_AT_CFA,
		.ra_offset = -SLOT_BYTES,
	};

	if (TABLE_RULE_IS_BARE(packed))
		return (struct unwind_rule){ .cfa = (uint8_t)TABLE_RULE_BARE(packed) };
	if (TABLE_RULE_FP(packed)) {
		rule.fp = UNWIND_VALUE_AT_CFA;
		rule.fp_offset = -SLOT_BYTES * (int32_t)(TABLE_RULE_FP(packed) + 1);
	}
	if (TABLE_RULE_BX(packed)) {
		rule.bx = UNWIND_VALUE_AT_CFA;
		rule.bx_offset = -SLOT_BYTES * (int32_t)(TABLE_RULE_BX(packed) + 1);
	}
	return rule;
}
