/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfi_program - runs call frame instructions and says what holds after them as an unwind rule.
 *
 * Follows the registers that a stack walk needs: CFA, return address, frame pointer, stack
 * pointer, and on arm64 whether the return address is signed. Part of cfi.h, which finds the
 * programs. Terms: DWARF 5, section 6.4.2; the vendors' opcodes: LSB 5, AArch64 DWARF ABI, and
 * mono/mini/mini-unwind.h of Mono.
 */
#ifndef FIRN_CODEC_ELF_CFI_PROGRAM_H
#define FIRN_CODEC_ELF_CFI_PROGRAM_H

#include "codec/elf/section_reader.h"
#include "codec/elf/unwind_sink.h"

#define CFI_REMEMBERED_MAX 16

/* DWARF numbers of what is followed. */
struct cfi_registers {
	uint8_t ra, fp, sp, bx; /* bx = ra where it is not followed */
	uint8_t last;		/* the highest that a rule may name */
	bool is_arm64;
};

/* Where the caller's value of a register is, in the terms of unwind_rule.h. */
struct cfi_place {
	uint8_t how; /* enum unwind_value */
	uint8_t reg;
	int32_t offset;
};

struct cfi_state {
	uint8_t cfa; /* enum unwind_cfa */
	uint8_t cfa_register, cfa_index;
	int8_t cfa_extra;
	int32_t cfa_offset;
	/* The last given: an instruction that changes one keeps the other, even past expressions.
	 */
	uint64_t named_register;
	int64_t named_offset;
	struct cfi_place ra, fp, sp, bx;
	bool is_expression; /* the CFA, whatever became of it */
	bool is_signed;
};

struct cfi_program {
	const struct cfi_registers *registers;
	struct section_reader *reader; /* of the section */
	uint64_t at, end;	       /* the instructions, as offsets in the section */
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointer_encoding;
	const struct cfi_state *initial; /* NULL for a CIE's own instructions */
	uint64_t address, address_end;	 /* of the function */
	uint64_t mark;			 /* where Mono's own instruction advances to; 0 = nowhere */
	uint32_t rule_flags;		 /* enum unwind_rule_flag that hold for all rows */
};

enum cfi_program_end {
	CFI_PROGRAM_DONE,
	CFI_PROGRAM_MALFORMED, /* the last row reaches to where the sense was lost */
};

void cfi_state_init(struct cfi_state *state, const struct cfi_registers *registers);

/* Runs from and into `state`. Rows go to `sink` when given. enum cfi_program_end, the sink's
 * value when that is not 0, or a negative code when the section cannot be read. */
int cfi_program_run(const struct cfi_program *program, struct cfi_state *state,
		    const struct unwind_row_sink *sink, enum cfi_program_end *ret_end,
		    struct err *err);

/* A pointer in one of the encodings of .eh_frame (DW_EH_PE_*); false: unknown, or cut off.
 * `address` is that of the pointer itself, data_address the base of DW_EH_PE_datarel or 0. */
bool cfi_read_pointer(const uint8_t **at, const uint8_t *end, uint8_t encoding, uint64_t address,
		      uint64_t data_address, uint64_t *ret);

/* LEB128 of up to 64 bits; false: cut off or too long. */
bool cfi_read_uleb(const uint8_t **at, const uint8_t *end, uint64_t *ret);
bool cfi_read_sleb(const uint8_t **at, const uint8_t *end, int64_t *ret);

#endif
