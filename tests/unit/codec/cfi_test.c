/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information made by hand: forms of entries, every instruction, and nonsense. */
#include "codec/elf/cfi.h"

#include <dwarf.h>
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "codec/elf/cfi_expression.h"

#define SECTION_ADDRESS 0x10000
#define FUNCTION_ADDRESS 0x401000
#define ROWS_MAX 64

/* ---- what comes out ---- */

struct got {
	size_t functions_count, rows_count;
	struct {
		uint64_t start, end, cookie;
	} functions[8];
	struct {
		uint64_t address;
		struct unwind_rule rule;
	} rows[ROWS_MAX];
};

static int take_function(void *context, uint64_t start, uint64_t end, uint64_t cookie)
{
	struct got *got = context;

	assert_true(got->functions_count < 8);
	got->functions[got->functions_count].start = start;
	got->functions[got->functions_count].end = end;
	got->functions[got->functions_count++].cookie = cookie;
	return 0;
}

static int take_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct got *got = context;

	assert_true(got->rows_count < ROWS_MAX);
	got->rows[got->rows_count].address = address;
	got->rows[got->rows_count++].rule = *rule;
	return 0;
}

/* ---- what goes in ---- */

static size_t begin_entry(struct strbuf *out)
{
	strbuf_add_u32(out, 0);
	return out->len;
}

static void end_entry(struct strbuf *out, size_t begun)
{
	uint32_t len;

	while (out->len % 8)
		strbuf_add_byte(out, DW_CFA_nop);
	len = (uint32_t)(out->len - begun);
	memcpy(out->data + begun - 4, &len, 4);
}

/* CFA = rsp + 8, return address at CFA - 8: what every function of x86-64 begins with. */
static const uint8_t x86_start[] = { DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1 };

static void add_cie(struct strbuf *out, const char *letters, uint8_t encoding, struct slice start)
{
	size_t begun = begin_entry(out);

	strbuf_add_u32(out, 0);
	strbuf_add_byte(out, 1);
	strbuf_add(out, letters, strlen(letters) + 1);
	strbuf_add_byte(out, 1);    /* code alignment */
	strbuf_add_byte(out, 0x78); /* data alignment: -8 */
	strbuf_add_byte(out, 16);
	strbuf_add_byte(out,
			(char)(strlen(letters) - 1)); /* augmentation data: a byte per letter */
	for (const char *letter = letters + 1; *letter; letter++)
		strbuf_add_byte(out, *letter == 'R' ? (char)encoding : 0);
	strbuf_add_slice(out, start);
	end_entry(out, begun);
}

static void add_fde(struct strbuf *out, size_t cie, uint64_t start, uint32_t len,
		    struct slice program)
{
	size_t begun = begin_entry(out);

	strbuf_add_u32(out, (uint32_t)(begun - cie));
	strbuf_add_u32(out, (uint32_t)(start - SECTION_ADDRESS - out->len)); /* pcrel sdata4 */
	strbuf_add_u32(out, len);
	strbuf_add_byte(out, 0);
	strbuf_add_slice(out, program);
	end_entry(out, begun);
}

static void decode_as(struct slice bytes, enum cfi_kind kind, uint16_t machine, struct got *got,
		      struct cfi_counts *ret_counts)
{
	struct unwind_function_sink functions = { take_function, got };
	struct unwind_row_sink rows = { take_row, got };
	struct section_reader *section = calloc(1, sizeof(*section));
	struct cfi *cfi = calloc(1, sizeof(*cfi));

	*got = (struct got){ 0 };
	section_reader_open_memory(section, bytes, SECTION_ADDRESS, "section");
	assert_int_equal(cfi_open(cfi, kind, machine, section, NULL), 0);
	assert_int_equal(cfi_list(cfi, false, &functions, NULL), 0);
	for (size_t i = 0; i < got->functions_count; i++)
		assert_int_equal(cfi_rows(cfi, got->functions[i].cookie, &rows, NULL), 0);
	if (ret_counts)
		*ret_counts = cfi->counts;
	free(cfi);
	free(section);
}

/* Runs one function's instructions, 32 bytes long, after the usual CIE. */
static void run_program(const void *program, size_t len, struct got *got)
{
	struct strbuf out = { 0 };

	add_cie(&out, "zR", DW_EH_PE_pcrel | DW_EH_PE_sdata4, slice_from(x86_start, 5));
	add_fde(&out, 0, FUNCTION_ADDRESS, 32, slice_from(program, len));
	decode_as(strbuf_slice(&out), CFI_EH_FRAME, EM_X86_64, got, NULL);
	assert_int_equal(got->functions_count, 1);
	strbuf_free(&out);
}

#define RUN(got, ...)                                                                              \
	do {                                                                                       \
		static const uint8_t program_[] = { __VA_ARGS__ };                                 \
		run_program(program_, sizeof(program_), (got));                                    \
	} while (0)

static void assert_row(const struct got *got, size_t i, uint64_t into, uint8_t reg, int32_t offset,
		       uint8_t fp, int32_t fp_offset)
{
	assert_true(i < got->rows_count);
	assert_int_equal(got->rows[i].address, FUNCTION_ADDRESS + into);
	assert_int_equal(got->rows[i].rule.cfa, UNWIND_CFA_REGISTER);
	assert_int_equal(got->rows[i].rule.cfa_register, reg);
	assert_int_equal(got->rows[i].rule.cfa_offset, offset);
	assert_int_equal(got->rows[i].rule.ra, UNWIND_VALUE_AT_CFA);
	assert_int_equal(got->rows[i].rule.ra_offset, -8);
	assert_int_equal(got->rows[i].rule.fp, fp);
	assert_int_equal(got->rows[i].rule.fp_offset, fp_offset);
}

/* ---- tests ---- */

static void frame_pointer_function_has_four_rows(void **state)
{
	struct got got;

	(void)state;
	RUN(&got, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2,
	    DW_CFA_advance_loc1, 3, DW_CFA_def_cfa_register, 6, DW_CFA_advance_loc2, 20, 0,
	    DW_CFA_def_cfa, 7, 8);
	assert_int_equal(got.functions[0].start, FUNCTION_ADDRESS);
	assert_int_equal(got.functions[0].end, FUNCTION_ADDRESS + 32);
	assert_int_equal(got.rows_count, 4);
	assert_row(&got, 0, 0, 7, 8, UNWIND_VALUE_SAME, 0);
	assert_row(&got, 1, 1, 7, 16, UNWIND_VALUE_AT_CFA, -16);
	assert_row(&got, 2, 4, 6, 16, UNWIND_VALUE_AT_CFA, -16);
	assert_row(&got, 3, 24, 7, 8, UNWIND_VALUE_AT_CFA, -16);
}

static void offsets_come_in_all_forms(void **state)
{
	struct got got;

	(void)state;
	RUN(&got, DW_CFA_def_cfa_offset_sf, 0x7e, /* -2 * -8 */
	    DW_CFA_advance_loc4, 1, 0, 0, 0, DW_CFA_def_cfa_sf, 6, 0x7d, DW_CFA_offset_extended, 6,
	    3, DW_CFA_advance_loc | 1, DW_CFA_offset_extended_sf, 6, 0x7f, DW_CFA_advance_loc | 1,
	    DW_CFA_GNU_negative_offset_extended, 6, 4, DW_CFA_GNU_args_size, 0x80, 1,
	    DW_CFA_advance_loc | 1, DW_CFA_val_offset, 6, 2, DW_CFA_advance_loc | 1,
	    DW_CFA_val_offset_sf, 6, 0x7e);
	assert_int_equal(got.rows_count, 6);
	assert_row(&got, 0, 0, 7, 16, UNWIND_VALUE_SAME, 0);
	assert_row(&got, 1, 1, 6, 24, UNWIND_VALUE_AT_CFA, -24);
	assert_row(&got, 2, 2, 6, 24, UNWIND_VALUE_AT_CFA, 8);
	assert_row(&got, 3, 3, 6, 24, UNWIND_VALUE_AT_CFA, 32);
	assert_row(&got, 4, 4, 6, 24, UNWIND_VALUE_CFA, -16);
	assert_row(&got, 5, 5, 6, 24, UNWIND_VALUE_CFA, 16);
}

static void remembered_states_come_back_with_the_cfa(void **state)
{
	struct got got;

	(void)state;
	RUN(&got, DW_CFA_def_cfa_offset, 32, DW_CFA_offset | 6, 2, DW_CFA_remember_state,
	    DW_CFA_remember_state, DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 8,
	    DW_CFA_restore | 6, DW_CFA_advance_loc | 4, DW_CFA_restore_state,
	    DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 64, DW_CFA_restore_extended, 6,
	    DW_CFA_advance_loc | 4, DW_CFA_restore_state);
	assert_int_equal(got.rows_count, 5);
	assert_row(&got, 0, 0, 7, 32, UNWIND_VALUE_AT_CFA, -16);
	assert_row(&got, 1, 4, 7, 8, UNWIND_VALUE_SAME, 0);
	assert_row(&got, 2, 8, 7, 32, UNWIND_VALUE_AT_CFA, -16);
	assert_row(&got, 3, 12, 7, 64, UNWIND_VALUE_SAME, 0);
	assert_row(&got, 4, 16, 7, 32, UNWIND_VALUE_AT_CFA, -16);
}

static void remembering_without_end_is_unsupported_from_there(void **state)
{
	uint8_t program[64];
	struct got got;

	(void)state;
	memset(program, DW_CFA_remember_state, sizeof(program));
	program[0] = DW_CFA_advance_loc | 5;
	run_program(program, sizeof(program), &got);
	assert_int_equal(got.rows_count, 2);
	assert_row(&got, 0, 0, 7, 8, UNWIND_VALUE_SAME, 0);
	assert_int_equal(got.rows[1].address, FUNCTION_ADDRESS + 5);
	assert_int_equal(got.rows[1].rule.cfa, UNWIND_CFA_UNSUPPORTED);
}

static void nonsense_makes_unsupported_rows_and_is_counted(void **state)
{
	static const uint8_t programs[][4] = {
		{ DW_CFA_advance_loc | 2, 0x3f },		       /* no such opcode */
		{ DW_CFA_advance_loc | 2, DW_CFA_restore_state },      /* nothing remembered */
		{ DW_CFA_advance_loc | 2, 0x2d },		       /* SPARC's and arm64's */
		{ DW_CFA_advance_loc | 2, DW_CFA_expression, 6, 127 }, /* longer than the program */
	};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct strbuf out = { 0 };
		struct cfi_counts counts;
		struct got got;

		add_cie(&out, "zR", DW_EH_PE_pcrel | DW_EH_PE_sdata4, slice_from(x86_start, 5));
		add_fde(&out, 0, FUNCTION_ADDRESS, 32, slice_from(programs[i], 4));
		decode_as(strbuf_slice(&out), CFI_EH_FRAME, EM_X86_64, &got, &counts);
		assert_int_equal(got.rows_count, 2);
		assert_row(&got, 0, 0, 7, 8, UNWIND_VALUE_SAME, 0);
		assert_int_equal(got.rows[1].rule.cfa, UNWIND_CFA_UNSUPPORTED);
		assert_int_equal(counts.malformed, 1);
		strbuf_free(&out);
	}
}

static void rows_stay_within_the_function(void **state)
{
	struct got got;

	(void)state;
	RUN(&got, DW_CFA_advance_loc | 31, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 1,
	    DW_CFA_def_cfa_offset, 24, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 32);
	assert_int_equal(got.rows_count, 2);
	assert_row(&got, 1, 31, 7, 16, UNWIND_VALUE_SAME, 0);
}

static void locations_never_go_back(void **state)
{
	uint8_t program[] = { DW_CFA_advance_loc | 8, DW_CFA_set_loc, 0, 0, 0, 0 };
	struct got got;

	(void)state;
	run_program(program, sizeof(program), &got); /* relative to itself: far before */
	assert_int_equal(got.rows_count, 2);
	assert_int_equal(got.rows[1].rule.cfa, UNWIND_CFA_UNSUPPORTED);
}

/* As hand-written code does it: the assembler's count of pushes goes on under the expression. */
static void registers_replace_expressions_and_keep_the_offset(void **state)
{
	struct got got;

	(void)state;
	RUN(&got, DW_CFA_def_cfa_offset, 56, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 3,
	    DW_OP_breg6, 0x78, DW_OP_deref, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_register, 7,
	    DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x70, DW_OP_deref,
	    DW_CFA_def_cfa_offset, 48, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_register, 7);
	assert_int_equal(got.rows_count, 5);
	assert_row(&got, 0, 0, 7, 56, UNWIND_VALUE_SAME, 0);
	assert_int_equal(got.rows[1].rule.cfa, UNWIND_CFA_DEREF);
	assert_int_equal(got.rows[1].rule.cfa_register, 6);
	assert_int_equal(got.rows[1].rule.cfa_offset, -8);
	assert_row(&got, 2, 2, 7, 56, UNWIND_VALUE_SAME, 0);
	assert_int_equal(got.rows[3].rule.cfa, UNWIND_CFA_DEREF);
	assert_int_equal(got.rows[3].rule.cfa_offset, -16);
	assert_row(&got, 4, 4, 7, 48, UNWIND_VALUE_SAME, 0);
}

static void another_stack_pointer_takes_the_cfas_part(void **state)
{
	struct got got;

	(void)state;
	/* As longjmp, then: rsp is CFA + 16, then at CFA - 24. */
	RUN(&got, DW_CFA_def_cfa, 5, 0, DW_CFA_register, 7, 8, DW_CFA_register, 16, 1,
	    DW_CFA_register, 6, 9, DW_CFA_advance_loc | 1, DW_CFA_def_cfa, 7, 8,
	    DW_CFA_restore_extended, 16, DW_CFA_val_offset_sf, 7, 0x7e, DW_CFA_offset | 6, 2,
	    DW_CFA_advance_loc | 1, DW_CFA_offset | 7, 3);
	assert_int_equal(got.rows_count, 3);
	assert_int_equal(got.rows[0].rule.cfa, UNWIND_CFA_REGISTER);
	assert_int_equal(got.rows[0].rule.cfa_register, 8);
	assert_int_equal(got.rows[0].rule.ra, UNWIND_VALUE_IN_REGISTER);
	assert_int_equal(got.rows[0].rule.ra_register, 1);
	assert_int_equal(got.rows[0].rule.fp_register, 9);
	assert_int_equal(got.rows[1].rule.cfa_register, 7);
	assert_int_equal(got.rows[1].rule.cfa_offset, 24);
	assert_int_equal(got.rows[1].rule.ra, UNWIND_VALUE_AT_REGISTER);
	assert_int_equal(got.rows[1].rule.ra_offset, 0);
	assert_int_equal(got.rows[1].rule.fp_offset, -8);
	assert_int_equal(got.rows[2].rule.cfa, UNWIND_CFA_DEREF);
	assert_int_equal(got.rows[2].rule.cfa_offset, -16);
}

static void pointers_are_read_in_every_encoding(void **state)
{
	static const struct {
		uint8_t encoding, bytes[8];
		uint64_t want;
	} cases[] = {
		{ DW_EH_PE_absptr, { 1, 2, 3, 4, 5, 6, 7, 8 }, 0x0807060504030201 },
		{ DW_EH_PE_udata2, { 0xff, 0xff }, 0xffff },
		{ DW_EH_PE_sdata2, { 0xff, 0xff }, UINT64_MAX },
		{ DW_EH_PE_udata4, { 0, 0, 0, 0x80 }, 0x80000000 },
		{ DW_EH_PE_sdata4, { 0, 0, 0, 0x80 }, 0xffffffff80000000 },
		{ DW_EH_PE_udata8, { 9 }, 9 },
		{ DW_EH_PE_sdata8 | DW_EH_PE_pcrel, { 9 }, 0x1009 },
		{ DW_EH_PE_uleb128, { 0x80, 0x01 }, 128 },
		{ DW_EH_PE_sleb128, { 0x7f }, UINT64_MAX },
		{ DW_EH_PE_sdata4 | DW_EH_PE_datarel, { 0xfe, 0xff, 0xff, 0xff }, 0x1ffe },
	};
	static const uint8_t unknown[] = { DW_EH_PE_indirect, DW_EH_PE_omit, 0x05,
					   DW_EH_PE_funcrel | DW_EH_PE_udata4, DW_EH_PE_aligned };
	uint8_t bytes[8] = { 0 };
	const uint8_t *at;
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		at = cases[i].bytes;
		assert_true(
			cfi_read_pointer(&at, at + 8, cases[i].encoding, 0x1000, 0x2000, &value));
		assert_int_equal(value, cases[i].want);
		at = cases[i].bytes;
		assert_false(cfi_read_pointer(&at, at, cases[i].encoding, 0, 0x2000, &value));
	}
	for (size_t i = 0; i < sizeof(unknown); i++) {
		at = bytes;
		assert_false(cfi_read_pointer(&at, at + 8, unknown[i], 0, 0, &value));
	}
	at = bytes;
	assert_false(
		cfi_read_pointer(&at, at + 8, DW_EH_PE_datarel | DW_EH_PE_sdata4, 0, 0, &value));
}

static void debug_frame_of_64_bit_dwarf_is_read(void **state)
{
	struct strbuf out = { 0 };
	size_t begun;
	uint64_t len;
	struct got got;

	(void)state;
	for (int is_fde = 0; is_fde < 2; is_fde++) {
		strbuf_add_u32(&out, UINT32_MAX);
		strbuf_add_u64(&out, 0);
		begun = out.len;
		strbuf_add_u64(&out, is_fde ? 0 : UINT64_MAX);
		if (is_fde) {
			strbuf_add_u64(&out, FUNCTION_ADDRESS);
			strbuf_add_u64(&out, 32);
		} else { /* version 4: sizes of address and segment selector; RA is LEB128 */
			strbuf_add(&out, "\4\0\10\0\1\x78\20", 7);
			strbuf_add(&out, x86_start, sizeof(x86_start));
		}
		len = out.len - begun;
		memcpy(out.data + begun - 8, &len, 8);
	}
	decode_as(strbuf_slice(&out), CFI_DEBUG_FRAME, EM_X86_64, &got, NULL);
	assert_int_equal(got.functions_count, 1);
	assert_int_equal(got.functions[0].end, FUNCTION_ADDRESS + 32);
	assert_int_equal(got.rows_count, 1);
	assert_row(&got, 0, 0, 7, 8, UNWIND_VALUE_SAME, 0);
	strbuf_free(&out);
}

static void augmentations_are_followed_or_left_out(void **state)
{
	static const struct {
		const char *letters;
		bool is_read;
		uint32_t flags;
	} cases[] = {
		{ "zR", true, 0 },   { "zRS", true, UNWIND_RULE_SIGNAL },
		{ "zLR", true, 0 },  { "zRB", true, 0 },
		{ "zRX", false, 0 }, { "armcc+", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf out = { 0 };
		struct cfi_counts counts;
		struct got got;

		add_cie(&out, cases[i].letters, DW_EH_PE_pcrel | DW_EH_PE_sdata4,
			slice_from(x86_start, 5));
		add_fde(&out, 0, FUNCTION_ADDRESS, 32, slice_from(NULL, 0));
		decode_as(strbuf_slice(&out), CFI_EH_FRAME, EM_X86_64, &got, &counts);
		assert_int_equal(got.functions_count, cases[i].is_read);
		assert_int_equal(counts.malformed, !cases[i].is_read);
		if (cases[i].is_read)
			assert_int_equal(got.rows[0].rule.flags, cases[i].flags);
		strbuf_free(&out);
	}
}

static void zeros_between_entries_are_skipped_or_end_the_section(void **state)
{
	struct section_reader *section = calloc(1, sizeof(*section));
	struct cfi *cfi = calloc(1, sizeof(*cfi));
	struct strbuf out = { 0 };
	struct got got = { 0 };
	struct unwind_function_sink sink = { take_function, &got };

	(void)state;
	add_cie(&out, "zR", DW_EH_PE_pcrel | DW_EH_PE_sdata4, slice_from(x86_start, 5));
	add_fde(&out, 0, FUNCTION_ADDRESS, 32, slice_from(NULL, 0));
	strbuf_add_u32(&out, 0);
	add_fde(&out, 0, FUNCTION_ADDRESS + 64, 32, slice_from(NULL, 0));
	section_reader_open_memory(section, strbuf_slice(&out), SECTION_ADDRESS, "section");
	assert_int_equal(cfi_open(cfi, CFI_EH_FRAME, EM_X86_64, section, NULL), 0);
	assert_int_equal(cfi_list(cfi, false, &sink, NULL), 0);
	assert_int_equal(got.functions_count, 2);
	got.functions_count = 0;
	assert_int_equal(cfi_list(cfi, true, &sink, NULL), 0);
	assert_int_equal(got.functions_count, 1);
	assert_int_equal(cfi_open(cfi, CFI_EH_FRAME, EM_386, section, NULL), -ERR_UNSUPPORTED);
	strbuf_free(&out);
	free(cfi);
	free(section);
}

static void long_functions_are_read_through_the_window(void **state)
{
	struct unwind_function_sink functions;
	struct section_reader *section = calloc(1, sizeof(*section));
	struct cfi *cfi = calloc(1, sizeof(*cfi));
	struct strbuf out = { 0 }, program = { 0 };
	struct unwind_row_sink rows;
	struct got got = { 0 };
	FILE *file = tmpfile();

	(void)state;
	/* Some 60 KB of instructions without an effect, then one that has one. */
	for (int i = 0; i < 20000; i++)
		strbuf_add(&program, "\x2e\x81\x01", 3); /* GNU_args_size 129 */
	strbuf_add(&program, "\x41\x0e\x10", 3);	 /* advance_loc 1; def_cfa_offset 16 */
	add_cie(&out, "zR", DW_EH_PE_pcrel | DW_EH_PE_sdata4, slice_from(x86_start, 5));
	add_fde(&out, 0, FUNCTION_ADDRESS, 32, strbuf_slice(&program));
	assert_int_equal(fwrite(out.data, 1, out.len, file), out.len);
	fflush(file);
	section_reader_open_file(section, fileno(file), 0, out.len, SECTION_ADDRESS, "file");
	functions = (struct unwind_function_sink){ take_function, &got };
	rows = (struct unwind_row_sink){ take_row, &got };
	assert_int_equal(cfi_open(cfi, CFI_EH_FRAME, EM_X86_64, section, NULL), 0);
	assert_int_equal(cfi_list(cfi, false, &functions, NULL), 0);
	assert_int_equal(got.functions_count, 1);
	assert_int_equal(cfi_rows(cfi, got.functions[0].cookie, &rows, NULL), 0);
	assert_int_equal(got.rows_count, 2);
	assert_row(&got, 1, 1, 7, 16, UNWIND_VALUE_SAME, 0);
	fclose(file);
	strbuf_free(&program);
	strbuf_free(&out);
	free(cfi);
	free(section);
}

static struct cfi_value evaluate(const void *bytes, size_t len, bool starts_with_cfa)
{
	return cfi_expression_evaluate(slice_from(bytes, len), starts_with_cfa);
}

#define EVALUATE(starts_with_cfa, ...)                                                             \
	evaluate((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }),       \
		 (starts_with_cfa))

static void expressions_of_distributions_are_recognised(void **state)
{
	struct cfi_value value;

	(void)state;
	value = EVALUATE(false, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and,
			 DW_OP_lit10, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus);
	assert_int_equal(value.kind, CFI_VALUE_PLT);
	assert_true(value.reg == 7 && value.offset == 8 && value.add == 10);
	value = EVALUATE(false, DW_OP_breg7, 8, DW_OP_breg9, 1, DW_OP_lit8, DW_OP_mul, DW_OP_plus,
			 DW_OP_deref, DW_OP_plus_uconst, 8);
	assert_int_equal(value.kind, CFI_VALUE_MEMORY_INDEXED);
	assert_true(value.reg == 7 && value.index == 9 && value.offset == 16 && value.add == 8);
	value = EVALUATE(true, DW_OP_drop, DW_OP_bregx, 6, 0x70, DW_OP_deref, DW_OP_const1s, 0xf8,
			 DW_OP_plus);
	assert_int_equal(value.kind, CFI_VALUE_MEMORY);
	assert_true(value.reg == 6 && value.offset == -16 && value.add == -8);
	value = EVALUATE(true, DW_OP_const4s, 0xe0, 0xff, 0xff, 0xff, DW_OP_plus);
	assert_true(value.kind == CFI_VALUE_CFA && value.offset == -32);
}

static void other_expressions_are_unknown(void **state)
{
	(void)state;
	assert_int_equal(EVALUATE(false, DW_OP_deref).kind, CFI_VALUE_UNKNOWN); /* empty stack */
	assert_int_equal(EVALUATE(false, DW_OP_breg7).kind, CFI_VALUE_UNKNOWN); /* cut off */
	assert_int_equal(EVALUATE(false, DW_OP_const8u, 1, 2).kind, CFI_VALUE_UNKNOWN);
	assert_int_equal(
		EVALUATE(true, DW_OP_lit8, DW_OP_minus, DW_OP_const1s, 0xe0, DW_OP_and).kind,
		CFI_VALUE_UNKNOWN);
	assert_int_equal(EVALUATE(false, DW_OP_breg7, 0, DW_OP_deref, DW_OP_deref).kind,
			 CFI_VALUE_UNKNOWN);
	assert_int_equal(EVALUATE(false, DW_OP_breg7, 0, DW_OP_skip, 0xfd, 0xff).kind,
			 CFI_VALUE_UNKNOWN);
	assert_int_equal(evaluate(NULL, 0, false).kind, CFI_VALUE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_pointer_function_has_four_rows),
		cmocka_unit_test(offsets_come_in_all_forms),
		cmocka_unit_test(remembered_states_come_back_with_the_cfa),
		cmocka_unit_test(remembering_without_end_is_unsupported_from_there),
		cmocka_unit_test(nonsense_makes_unsupported_rows_and_is_counted),
		cmocka_unit_test(rows_stay_within_the_function),
		cmocka_unit_test(locations_never_go_back),
		cmocka_unit_test(registers_replace_expressions_and_keep_the_offset),
		cmocka_unit_test(another_stack_pointer_takes_the_cfas_part),
		cmocka_unit_test(pointers_are_read_in_every_encoding),
		cmocka_unit_test(debug_frame_of_64_bit_dwarf_is_read),
		cmocka_unit_test(augmentations_are_followed_or_left_out),
		cmocka_unit_test(zeros_between_entries_are_skipped_or_end_the_section),
		cmocka_unit_test(long_functions_are_read_through_the_window),
		cmocka_unit_test(expressions_of_distributions_are_recognised),
		cmocka_unit_test(other_expressions_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
