/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfi - call frame information: functions and unwind rows of .eh_frame and .debug_frame.
 *
 * For x86-64 and arm64, 64-bit little-endian, linked files (no relocations are applied). CIE
 * versions 1, 3 and 4; augmentations z L R P S B G and "eh". The section is read through windows:
 * memory is sizeof(struct cfi), 64 KB, whatever its size. What cannot be read or said is counted
 * and left out, or becomes a rule that says so; only input that fails to be read is an error.
 * One thread at a time.
 *
 * Sources: DWARF 5, 6.4; LSB 5, chapter 10.6 (.eh_frame, .eh_frame_hdr); System V psABI x86-64 3.6;
 * DWARF for the Arm 64-bit architecture.
 */
#ifndef FIRN_CODEC_ELF_CFI_H
#define FIRN_CODEC_ELF_CFI_H

#include "codec/elf/cfi_program.h"

#define CFI_CIES_CACHED 64
/*
 * Instructions read in the life of one reader: keeps entries that overlap, and CIEs that take turns
 * in the cache, from costing forever. Who reads something small lowers work_left_bytes.
 */
#define CFI_WORK_BYTES_MAX (1ull << 30)

enum cfi_kind { CFI_EH_FRAME, CFI_DEBUG_FRAME };

struct cfi_cie {
	uint64_t offset; /* in the section; UINT64_MAX = this place of the cache is empty */
	bool is_bad;	 /* not understood: functions that use it are left out */
	bool has_augmentation_data;
	uint8_t address_encoding; /* DW_EH_PE_* */
	uint64_t code_align;
	int64_t data_align;
	uint32_t rule_flags;
	struct cfi_state state; /* after its instructions */
};

struct cfi_counts {
	uint64_t functions; /* listed */
	uint64_t malformed; /* entries left out, or programs that ended in nonsense */
};

struct cfi {
	struct section_reader fdes, cies; /* two windows on the section */
	enum cfi_kind kind;
	struct cfi_registers registers;
	uint64_t work_left_bytes;
	struct cfi_counts counts;
	struct cfi_cie cache[CFI_CIES_CACHED];
};

/*
 * `section` says where the bytes are (it is copied; what it borrows stays borrowed), and their
 * virtual address. ERR_UNSUPPORTED for machines other than EM_X86_64 and EM_AARCH64.
 */
int cfi_open(struct cfi *cfi, enum cfi_kind kind, uint16_t machine,
	     const struct section_reader *section, struct err *err);

/* All functions, by a walk through the section; the cookie is the offset of the FDE.
 * `to_terminator`: the section's size is a guess, and the first zero length ends it. */
int cfi_list(struct cfi *cfi, bool to_terminator, const struct unwind_function_sink *sink,
	     struct err *err);

/* The same by the table of .eh_frame_hdr. ERR_UNSUPPORTED when it has none of the usual form. */
int cfi_list_by_header(struct cfi *cfi, struct section_reader *header,
		       const struct unwind_function_sink *sink, struct err *err);

/* Where an .eh_frame_hdr says that .eh_frame is. */
int cfi_header_target(struct section_reader *header, uint64_t *ret_address, struct err *err);

/* The rows of a listed function. */
int cfi_rows(struct cfi *cfi, uint64_t cookie, const struct unwind_row_sink *sink, struct err *err);

#endif
