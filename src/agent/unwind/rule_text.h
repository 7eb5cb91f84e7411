/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule_text - unwind rules for people and scripts: "CFA=rsp+16 RA=c-8 FP=c-16".
 *
 * The forms are part of `firn unwind-table` and stay: docs/formats/unwind_table.md lists them.
 */
#ifndef FIRN_AGENT_UNWIND_RULE_TEXT_H
#define FIRN_AGENT_UNWIND_RULE_TEXT_H

#include <stdint.h>

#include "base/strbuf.h"
#include "codec/elf/unwind_rule.h"

void rule_text_add(struct strbuf *out, const struct unwind_rule *rule, uint16_t machine);

#endif
