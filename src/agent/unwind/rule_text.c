/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/rule_text.h"

#include <elf.h>

static void add_register(struct strbuf *out, uint8_t number, uint16_t machine)
{
	static const char *const x86[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi",
					   "rbp", "rsp", "r8",	"r9",  "r10", "r11",
					   "r12", "r13", "r14", "r15", "rip" };

	if (machine == EM_X86_64 && number < sizeof(x86) / sizeof(x86[0]))
		strbuf_add_text(out, x86[number]);
	else if (machine == EM_AARCH64 && number == UNWIND_ARM64_SP)
		strbuf_add_text(out, "sp");
	else
		strbuf_addf(out, machine == EM_AARCH64 ? "x%u" : "r%u", number);
}

static void add_cfa(struct strbuf *out, const struct unwind_rule *rule, uint16_t machine)
{
	bool in_memory = rule->cfa == UNWIND_CFA_DEREF || rule->cfa == UNWIND_CFA_DEREF_INDEXED;

	strbuf_add_text(out, in_memory ? "CFA=*(" : "CFA=");
	add_register(out, rule->cfa_register, machine);
	if (rule->cfa == UNWIND_CFA_DEREF_INDEXED) {
		strbuf_add_text(out, "+8*");
		add_register(out, rule->cfa_index, machine);
	}
	strbuf_addf(out, "%+d", rule->cfa_offset);
	if (in_memory)
		strbuf_addf(out, ")%+d", 8 * rule->cfa_extra);
	else if (rule->cfa == UNWIND_CFA_GOROUTINE)
		strbuf_add_text(out, "|goroutine");
	else if (rule->cfa == UNWIND_CFA_CLONE)
		strbuf_add_text(out, "|clone");
	else if (rule->cfa == UNWIND_CFA_PLT)
		strbuf_addf(out, "+8*(pc%%16>=%d)", rule->cfa_extra);
}

static void add_value(struct strbuf *out, uint8_t how, uint8_t reg, int32_t offset,
		      uint16_t machine)
{
	switch (how) {
	case UNWIND_VALUE_SAME:
		strbuf_add_text(out, "same");
		break;
	case UNWIND_VALUE_AT_CFA:
		strbuf_addf(out, "c%+d", offset);
		break;
	case UNWIND_VALUE_AT_REGISTER:
		strbuf_add_text(out, "*(");
		add_register(out, reg, machine);
		strbuf_addf(out, "%+d)", offset);
		break;
	case UNWIND_VALUE_IN_REGISTER:
		add_register(out, reg, machine);
		strbuf_addf(out, "%+d", offset);
		break;
	case UNWIND_VALUE_CFA:
		strbuf_addf(out, "v%+d", offset);
		break;
	case UNWIND_VALUE_UNDEFINED:
		strbuf_add_text(out, "u");
		break;
	default:
		strbuf_add_text(out, "unsupported");
	}
}

void rule_text_add(struct strbuf *out, const struct unwind_rule *rule, uint16_t machine)
{
	switch (rule->cfa) {
	case UNWIND_CFA_NONE:
		strbuf_add_text(out, "none");
		return;
	case UNWIND_CFA_END:
		strbuf_add_text(out, "end");
		return;
	case UNWIND_CFA_UNSUPPORTED:
		strbuf_add_text(out, "unsupported");
		return;
	}
	add_cfa(out, rule, machine);
	strbuf_add_text(out, " RA=");
	add_value(out, rule->ra, rule->ra_register, rule->ra_offset, machine);
	strbuf_add_text(out, " FP=");
	add_value(out, rule->fp, rule->fp_register, rule->fp_offset, machine);
	if (rule->flags & UNWIND_RULE_SIGNAL)
		strbuf_add_text(out, " signal");
	if (rule->flags & UNWIND_RULE_PAC)
		strbuf_add_text(out, " pac");
}
