/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_rule - packs the rules that nearly all x86-64 code needs into rows (bpf/table.h,
 * TABLE_RULE_LISTED). Thread-safe: no state.
 */
#ifndef FIRN_AGENT_UNWIND_ROW_RULE_H
#define FIRN_AGENT_UNWIND_ROW_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/bpf/table.h"

/* The rule in 19 bits; false when it does not fit. What fits comes back the same, byte by byte. */
bool row_rule_pack(const struct unwind_rule *rule, uint32_t *ret);
struct unwind_rule row_rule_unpack(uint32_t packed);

#endif
