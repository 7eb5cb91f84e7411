/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gopclntab_rule - how Go's functions use the stack: unwind rules from frame sizes.
 *
 * Part of gopclntab, which says what is special and why. Pure.
 */
#ifndef FIRN_CODEC_ELF_GOPCLNTAB_RULE_H
#define FIRN_CODEC_ELF_GOPCLNTAB_RULE_H

#include "codec/elf/gopclntab.h"

/* What Go's runtime does with the stack in a function. */
enum gopclntab_kind {
	GOPCLNTAB_ORDINARY,
	GOPCLNTAB_OUTERMOST,	      /* threads and goroutines begin here */
	GOPCLNTAB_SIGNAL_RETURN,      /* what a signal handler returns to */
	GOPCLNTAB_AFTER_INTERRUPTION, /* pretends to be called by the instruction that was
					 interrupted */
	GOPCLNTAB_SWITCHES,	      /* changes to another stack, and comes back */
	GOPCLNTAB_LEAVES,	      /* changes to another stack for good */
	GOPCLNTAB_GROWS,	      /* as SWITCHES, and the runtime notes where from */
};

static inline bool gopclntab_leaves_stack(enum gopclntab_kind kind)
{
	return kind == GOPCLNTAB_SWITCHES || kind == GOPCLNTAB_GROWS;
}

/* From the function's name and, since Go 1.17, the flags of its record (runtime.funcFlag). */
enum gopclntab_kind gopclntab_kind_of(const struct gopclntab_layout *layout, const char *name,
				      uint8_t flags);

/*
 * The rule where the stack pointer is `bytes` below its value at entry. is_saved: the frame
 * pointer has been saved and changed; is_framed: the function does so somewhere.
 */
struct unwind_rule gopclntab_rule(const struct gopclntab_layout *layout, enum gopclntab_kind kind,
				  int64_t bytes, bool is_saved, bool is_framed);

#endif
