/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_rule - rules as rows say them by themselves (bpf/table.h, TABLE_RULE_LISTED): what nearly all
 * code of x86-64 needs. Thread-safe: no state.
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
