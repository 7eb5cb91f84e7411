/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_rule - how to get from the registers of one frame to those of its caller.
 *
 * The decoders of unwind information (cfi.h, gopclntab.h, sframe.h) give such rules, the tables
 * hold them and the BPF unwinder follows them; so a rule is plain data of fixed layout, and this
 * header includes only the kernel's types. Registers have DWARF numbers: on x86-64 6 = rbp, 7 =
 * rsp, 16 = rip; on arm64 29 = fp, 30 = lr, 31 = sp. "The frame pointer" is rbp or x29, whatever a
 * function uses it for. Of the other registers that calls preserve only rbx is followed: the CFA of
 * the dynamic linker's lazy binding is in it, under several frames.
 *
 * Terms: DWARF 5, section 6.4. CFA = canonical frame address, the caller's stack pointer.
 */
#ifndef FIRN_CODEC_ELF_UNWIND_RULE_H
#define FIRN_CODEC_ELF_UNWIND_RULE_H

#include <linux/types.h>

#define UNWIND_X86_AX 0
#define UNWIND_X86_BX 3
#define UNWIND_X86_FP 6
#define UNWIND_X86_SP 7
#define UNWIND_ARM64_FP 29
#define UNWIND_ARM64_LR 30
#define UNWIND_ARM64_SP 31
#define UNWIND_REGISTERS 32 /* rules name only those below */

enum unwind_cfa {
	UNWIND_CFA_NONE,	  /* nothing is known about these addresses */
	UNWIND_CFA_END,		  /* the outermost frame: the return address is undefined */
	UNWIND_CFA_UNSUPPORTED,	  /* known, but not to be said in a rule */
	UNWIND_CFA_REGISTER,	  /* register + offset */
	UNWIND_CFA_DEREF,	  /* *(register + offset) + 8 * extra */
	UNWIND_CFA_DEREF_INDEXED, /* *(register + 8 * index + offset) + 8 * extra */
	UNWIND_CFA_PLT,		  /* register + offset + ((pc & 15) >= extra ? 8 : 0) */
	UNWIND_CFA_GOROUTINE,	  /* where Go's runtime says that the thread's goroutine stopped to
				     have its stack grown; else what the rule says otherwise */
	UNWIND_CFA_CLONE,	  /* behind a system call that makes a thread: register + offset in
				     the one that called, the outermost frame in the new one */
};

enum unwind_value {
	UNWIND_VALUE_SAME,	  /* unchanged; as a return address: in the link register */
	UNWIND_VALUE_AT_CFA,	  /* *(cfa + offset) */
	UNWIND_VALUE_AT_REGISTER, /* *(register + offset), with this frame's value of it */
	UNWIND_VALUE_IN_REGISTER, /* register + offset */
	UNWIND_VALUE_CFA,	  /* cfa + offset */
	UNWIND_VALUE_UNDEFINED,	  /* lost */
	UNWIND_VALUE_UNSUPPORTED,
};

enum unwind_rule_flag {
	UNWIND_RULE_SIGNAL = 1, /* the caller was interrupted: its pc is no return address */
	UNWIND_RULE_PAC = 2,	/* arm64: the return address is signed */
};

struct unwind_rule {
	__u8 cfa; /* enum unwind_cfa */
	__u8 cfa_register;
	__u8 cfa_index;
	__s8 cfa_extra;
	__u8 ra; /* enum unwind_value, of the return address */
	__u8 ra_register;
	__u8 fp; /* enum unwind_value, of the caller's frame pointer */
	__u8 fp_register;
	__s32 cfa_offset;
	__s32 ra_offset;
	__s32 fp_offset;
	__u8 flags; /* enum unwind_rule_flag */
	__u8 bx;    /* enum unwind_value of the caller's rbx: same, at CFA, else unsupported */
	__u16 reserved;
	__s32 bx_offset;
};

_Static_assert(sizeof(struct unwind_rule) == 28, "no padding: rules are compared as bytes");

#endif
