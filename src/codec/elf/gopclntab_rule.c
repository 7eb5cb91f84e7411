/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/gopclntab_rule.h"

#include <elf.h>

#define FRAME_BYTES_MAX 0x7ffffff0

/* runtime.funcFlag, Go 1.17 and later. */
#define FLAG_TOP_FRAME 1u
#define FLAG_WRITES_SP 2u

static bool name_is(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(list[i]);

		/* Linkers other than Go's see the name with its calling convention. */
		if (!strncmp(name, list[i], len) && (!name[len] || !strcmp(name + len, ".abi0")))
			return true;
	}
	return false;
}

#define NAME_IS(name, list) name_is(name, list, sizeof(list) / sizeof((list)[0]))

enum gopclntab_kind gopclntab_kind_of(const struct gopclntab_layout *layout, const char *name,
				      uint8_t flags)
{
	static const char *const outermost[] = { "runtime.goexit", "runtime.mstart",
						 "runtime.rt0_go" };
	static const char *const signal_return[] = { "runtime.sigreturn",
						     "runtime.sigreturn__sigaction" };
	static const char *const interrupted[] = { "runtime.sigpanic", "runtime.sigpanic0",
						   "runtime.asyncPreempt", "runtime.debugCallV1",
						   "runtime.debugCallV2" };
	static const char *const leaves[] = { "runtime.mcall" };
	static const char *const signal_entry[] = { "runtime.sigtramp", "runtime.cgoSigtramp" };
	static const char *const grows[] = { "runtime.morestack" };
	static const char *const switches[] = {
		"runtime.systemstack",
		"runtime.asmcgocall",
		"runtime.asmcgocall_no_g",
		"runtime.cgocallback",
		"runtime.cgocallback_gofunc",
		"runtime.gogo",
		"runtime.nanotime",
		"runtime.nanotime1",
		"runtime.walltime",
		"runtime.walltime1",
		"runtime.sigfwd",
		"runtime.callCgoSigaction",
	};

	if (!strncmp(name, "_rt0_", 5))
		return strstr(name, "_lib") ? GOPCLNTAB_ORDINARY : GOPCLNTAB_OUTERMOST;
	if (NAME_IS(name, outermost))
		return GOPCLNTAB_OUTERMOST;
	if (layout->machine == EM_X86_64 && NAME_IS(name, signal_return))
		return GOPCLNTAB_SIGNAL_RETURN;
	if (NAME_IS(name, interrupted))
		return GOPCLNTAB_AFTER_INTERRUPTION;
	if (NAME_IS(name, leaves))
		return GOPCLNTAB_LEAVES;
	if (layout->machine == EM_X86_64 && NAME_IS(name, grows))
		return GOPCLNTAB_GROWS;
	if (layout->version < GOPCLNTAB_GO_1_18) /* too old to say it in flags */
		return NAME_IS(name, switches) ? GOPCLNTAB_SWITCHES : GOPCLNTAB_ORDINARY;
	if (flags & FLAG_WRITES_SP)
		return GOPCLNTAB_SWITCHES;
	/* Go ends there, as the signal handler's caller is no Go function; we go on. */
	if ((flags & FLAG_TOP_FRAME) && !NAME_IS(name, signal_entry))
		return GOPCLNTAB_OUTERMOST;
	return GOPCLNTAB_ORDINARY;
}

static struct unwind_rule register_rule(uint8_t cfa_register, int64_t cfa_offset)
{
	return (struct unwind_rule){
		.cfa = UNWIND_CFA_REGISTER,
		.cfa_register = cfa_register,
		.cfa_offset = (int32_t)cfa_offset,
	};
}

static void set_at_cfa(struct unwind_rule *rule, int64_t ra_offset)
{
	rule->ra = UNWIND_VALUE_AT_CFA;
	rule->ra_offset = (int32_t)ra_offset;
}

static void set_fp_at_cfa(struct unwind_rule *rule, int64_t fp_offset)
{
	rule->fp = UNWIND_VALUE_AT_CFA;
	rule->fp_offset = (int32_t)fp_offset;
}

/* The frame is `bytes` large, without x86's return address; is_saved: so is the frame pointer. */
static struct unwind_rule stack_rule(uint16_t machine, int64_t bytes, bool is_saved)
{
	struct unwind_rule rule;

	if (machine == EM_X86_64) {
		rule = register_rule(UNWIND_X86_SP, bytes + 8);
		set_at_cfa(&rule, -8);
		if (is_saved)
			set_fp_at_cfa(&rule, -16);
		return rule;
	}
	rule = register_rule(UNWIND_ARM64_SP, bytes);
	if (bytes) /* the link register is at the frame's low end, the frame pointer below it */
		set_at_cfa(&rule, -bytes);
	if (is_saved)
		set_fp_at_cfa(&rule, -bytes - 8);
	return rule;
}

/*
 * On arm64 the frame pointer is 8 below a frame's low end, so it tells nothing of its high end;
 * but the caller's frame pointer, which it points at, tells where the caller's frame begins.
 */
static struct unwind_rule frame_pointer_rule(uint16_t machine)
{
	struct unwind_rule rule;

	if (machine == EM_X86_64) {
		rule = register_rule(UNWIND_X86_FP, 16);
		set_at_cfa(&rule, -8);
		set_fp_at_cfa(&rule, -16);
		return rule;
	}
	return (struct unwind_rule){
		.cfa = UNWIND_CFA_DEREF,
		.cfa_register = UNWIND_ARM64_FP,
		.cfa_extra = 1,
		.ra = UNWIND_VALUE_AT_REGISTER,
		.ra_register = UNWIND_ARM64_FP,
		.ra_offset = 8,
		.fp = UNWIND_VALUE_AT_REGISTER,
		.fp_register = UNWIND_ARM64_FP,
	};
}

/*
 * The kernel's frame once the handler has returned: a struct ucontext, whose uc_mcontext.gregs
 * are at 40: rbp the 11th of them, rsp the 16th, rip the 17th.
 */
static struct unwind_rule signal_return_rule(void)
{
	return (struct unwind_rule){
		.cfa = UNWIND_CFA_DEREF,
		.cfa_register = UNWIND_X86_SP,
		.cfa_offset = 160,
		.ra = UNWIND_VALUE_AT_REGISTER,
		.ra_register = UNWIND_X86_SP,
		.ra_offset = 168,
		.fp = UNWIND_VALUE_AT_REGISTER,
		.fp_register = UNWIND_X86_SP,
		.fp_offset = 120,
		.flags = UNWIND_RULE_SIGNAL,
	};
}

/*
 * A signal handler made it look as if the interrupted instruction had called this function. On
 * arm64 it kept the link register in 16 bytes between the two frames (sigctxt.pushCall).
 */
static void skip_injected_call(uint16_t machine, struct unwind_rule *rule)
{
	rule->flags = UNWIND_RULE_SIGNAL;
	if (machine == EM_X86_64)
		return;
	rule->cfa_offset += 16;
	if (rule->ra == UNWIND_VALUE_AT_CFA)
		rule->ra_offset -= 16;
	if (rule->fp == UNWIND_VALUE_AT_CFA)
		rule->fp_offset -= 16;
}

struct unwind_rule gopclntab_rule(const struct gopclntab_layout *layout, enum gopclntab_kind kind,
				  int64_t bytes, bool is_saved, bool is_framed)
{
	struct unwind_rule rule;

	if (kind == GOPCLNTAB_OUTERMOST || (kind == GOPCLNTAB_LEAVES && bytes > 0))
		return (struct unwind_rule){ .cfa = UNWIND_CFA_END };
	if (kind == GOPCLNTAB_SIGNAL_RETURN)
		return signal_return_rule();
	if (gopclntab_leaves_stack(kind) && (is_saved || !is_framed)) {
		rule = frame_pointer_rule(layout->machine);
		if (kind == GOPCLNTAB_GROWS)
			rule.cfa = UNWIND_CFA_GOROUTINE;
		return rule;
	}
	if (bytes < 0 || bytes > FRAME_BYTES_MAX || bytes % 8)
		return (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED };
	rule = stack_rule(layout->machine, bytes, is_saved);
	if (kind == GOPCLNTAB_AFTER_INTERRUPTION)
		skip_injected_call(layout->machine, &rule);
	return rule;
}
