/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SFrame sections: those of golden/sframe against what readelf prints of them and of the .eh_frame
 * beside them; the same rows written as versions 2 and 3; what only version 3 can say, by hand.
 */
#include "codec/elf/sframe.h"

#include <elf.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define BYTES_MAX 4096u
#define ROWS_MAX 1024u
#define HEADER_BYTES 28u

struct listed {
	uint64_t start, end, cookie;
};

struct given {
	uint64_t address;
	struct unwind_rule rule;
};

static struct {
	struct listed functions[64];
	struct given rows[ROWS_MAX];
	size_t functions_count, rows_count;
} found;

static struct sframe table;
static struct section_reader section;

static int add_function(void *context, uint64_t start, uint64_t end, uint64_t cookie)
{
	(void)context;
	assert_true(found.functions_count < 64);
	found.functions[found.functions_count++] = (struct listed){ start, end, cookie };
	return 0;
}

static int add_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	(void)context;
	assert_true(found.rows_count < ROWS_MAX);
	found.rows[found.rows_count++] = (struct given){ address, *rule };
	return 0;
}

static void open_section(const uint8_t *bytes, size_t size, uint64_t address, uint16_t machine)
{
	struct err err = { 0 };

	section_reader_open_memory(&section, slice_from(bytes, size), address, "section");
	if (sframe_open(&table, &section, machine, &err))
		fail_msg("%s", err.message);
}

static void read_all(void)
{
	const struct unwind_function_sink functions = { .function = add_function };
	const struct unwind_row_sink rows = { .row = add_row };
	struct err err;

	found.functions_count = found.rows_count = 0;
	assert_int_equal(sframe_functions(&table, &functions, &err), 0);
	for (size_t i = 0; i < found.functions_count; i++) {
		size_t first = found.rows_count;

		assert_int_equal(sframe_rows(&table, found.functions[i].cookie, &rows, &err), 0);
		assert_true(found.rows_count > first);
		for (size_t row = first; row < found.rows_count; row++) {
			assert_true(found.rows[row].address >= found.functions[i].start);
			assert_true(found.rows[row].address < found.functions[i].end);
			assert_true(row == first ||
				    found.rows[row - 1].address < found.rows[row].address);
		}
	}
}

static FILE *open_golden(const char *name)
{
	const char *tests = getenv("FIRN_TESTS");
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/golden/sframe/%s", tests ? tests : "tests", name);
	file = fopen(path, "r");
	if (!file)
		fail_msg("no \"%s\"", path);
	return file;
}

static size_t read_golden(const char *machine, uint8_t *ret, uint64_t *ret_address)
{
	char name[64], line[256];
	FILE *file;
	size_t size;

	snprintf(name, sizeof(name), "%s.sframe", machine);
	file = open_golden(name);
	size = fread(ret, 1, BYTES_MAX, file);
	fclose(file);
	snprintf(name, sizeof(name), "%s.rows", machine);
	file = open_golden(name);
	assert_non_null(fgets(line, sizeof(line), file));
	assert_int_equal(sscanf(line, ".sframe PROGBITS %" SCNx64, ret_address), 1);
	fclose(file);
	return size;
}

/* "c-16", "c-16[s]", "u", "u[s]" beside a value that is the same unless it is at the CFA. */
static void assert_value(const char *text, uint8_t value, int32_t offset, bool is_signed)
{
	assert_int_equal(value, text[0] == 'c' ? UNWIND_VALUE_AT_CFA : UNWIND_VALUE_SAME);
	if (text[0] == 'c')
		assert_int_equal(offset, atoi(text + 1));
	assert_true(is_signed == (strstr(text, "[s]") != NULL));
}

static void assert_row(const struct given *row, uint64_t address, const char *base, int cfa,
		       const char *fp, const char *ra, uint16_t machine)
{
	const struct unwind_rule *rule = &row->rule;
	bool is_sp = !strcmp(base, "sp"), is_signed = rule->flags & UNWIND_RULE_PAC;

	assert_true(row->address == address);
	assert_int_equal(rule->cfa, UNWIND_CFA_REGISTER);
	assert_int_equal(rule->cfa_offset, cfa);
	if (machine == EM_X86_64) {
		assert_int_equal(rule->cfa_register, is_sp ? UNWIND_X86_SP : UNWIND_X86_FP);
		assert_int_equal(rule->ra, UNWIND_VALUE_AT_CFA);
		assert_int_equal(rule->ra_offset, -8);
		assert_false(is_signed);
	} else {
		assert_int_equal(rule->cfa_register, is_sp ? UNWIND_ARM64_SP : UNWIND_ARM64_FP);
		assert_value(ra, rule->ra, rule->ra_offset, is_signed);
	}
	assert_value(fp, rule->fp, rule->fp_offset, false);
}

/* All functions and rows in readelf's order, which is the section's. */
static void compare_with_readelf(const char *machine_name, uint16_t machine)
{
	size_t functions = 0, rows = 0;
	char name[64], line[256];
	bool is_masked = false;
	FILE *file;

	snprintf(name, sizeof(name), "%s.rows", machine_name);
	file = open_golden(name);
	while (fgets(line, sizeof(line), file)) {
		char base[8], fp[32], ra[32];
		uint64_t address, size;
		int cfa;

		if (sscanf(line, " func idx [%*u]: pc = %" SCNx64 ", size = %" SCNu64, &address,
			   &size) == 2) {
			assert_true(functions < found.functions_count);
			assert_true(found.functions[functions].start == address);
			assert_true(found.functions[functions].end == address + size);
			functions++;
		}
		if (strstr(line, "STARTPC"))
			is_masked = strstr(line, "[m]") != NULL;
		if (sscanf(line, " %" SCNx64 " %2[a-z]%d %31s %31s", &address, base, &cfa, fp,
			   ra) != 5 ||
		    strstr(line, "func"))
			continue;
		if (is_masked) { /* the procedure linkage table: two rows of readelf's are one */
			assert_true(rows > 0 && machine == EM_X86_64);
			if (address)
				continue;
			assert_int_equal(found.rows[rows].rule.cfa, UNWIND_CFA_PLT);
			assert_int_equal(found.rows[rows].rule.cfa_offset, 8);
			assert_int_equal(found.rows[rows].rule.cfa_extra, 11);
			rows++;
			continue;
		}
		assert_true(rows < found.rows_count);
		assert_row(&found.rows[rows++], address, base, cfa, fp, ra, machine);
	}
	fclose(file);
	assert_true(rows > 30);
	assert_int_equal(rows, found.rows_count);
	assert_int_equal(functions, found.functions_count);
}

/* What the compiler said of the CFA in DWARF, for all functions that have a row of SFrame. */
static void compare_with_eh_frame(const char *machine_name)
{
	char name[64], line[256], base[8];
	uint64_t address;
	unsigned rows = 0;
	FILE *file;
	int cfa;

	snprintf(name, sizeof(name), "%s.frames", machine_name);
	file = open_golden(name);
	while (fgets(line, sizeof(line), file)) {
		const struct unwind_rule *rule = NULL;

		if (sscanf(line, "%" SCNx64 " %7[a-z0-9]%d", &address, base, &cfa) != 3 ||
		    !address || strstr(line, "FDE"))
			continue;
		for (size_t i = 0; i < found.rows_count; i++) {
			if (found.rows[i].address <= address)
				rule = &found.rows[i].rule;
		}
		assert_non_null(rule);
		assert_int_equal(rule->cfa_offset, cfa);
		assert_int_equal(strstr(base, "sp") != NULL,
				 rule->cfa_register == UNWIND_X86_SP ||
					 rule->cfa_register == UNWIND_ARM64_SP);
		rows++;
	}
	fclose(file);
	assert_true(rows > 30);
}

static void rows_are_those_readelf_prints(void **state)
{
	static uint8_t bytes[BYTES_MAX];
	uint64_t address;
	size_t size;

	(void)state;
	size = read_golden("x86_64", bytes, &address);
	open_section(bytes, size, address, EM_X86_64);
	read_all();
	compare_with_readelf("x86_64", EM_X86_64);
	compare_with_eh_frame("x86_64");
	size = read_golden("aarch64", bytes, &address);
	open_section(bytes, size, address, EM_AARCH64);
	read_all();
	compare_with_readelf("aarch64", EM_AARCH64);
	compare_with_eh_frame("aarch64");
}

static void put(uint8_t *p, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(value >> (8 * i));
}

/* A section of version 1 as 2: function entries get 3 more bytes. */
static size_t as_version_2(const uint8_t *from, size_t size, uint8_t *to)
{
	uint32_t count = section_u32(from + 8), rows_at = HEADER_BYTES + section_u32(from + 24);

	memset(to, 0, BYTES_MAX);
	memcpy(to, from, HEADER_BYTES);
	to[2] = 2;
	put(to + 24, section_u32(from + 24) + 3 * (uint64_t)count, 4);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *entry = from + HEADER_BYTES + 17 * (size_t)i;

		memcpy(to + HEADER_BYTES + 20 * (size_t)i, entry, 17);
		to[HEADER_BYTES + 20 * (size_t)i + 17] = entry[16] & 16 ? 16 : 0;
	}
	memcpy(to + rows_at + 3 * (size_t)count, from + rows_at, size - rows_at);
	return size + 3 * (size_t)count;
}

/* Where the rows end that begin at `first`: the linker sorts functions, and leaves rows. */
static uint32_t end_of_rows(const uint8_t *from, size_t size, uint32_t first)
{
	uint32_t end = (uint32_t)size - HEADER_BYTES - section_u32(from + 24);

	for (uint32_t i = 0; i < section_u32(from + 8); i++) {
		uint32_t other = section_u32(from + HEADER_BYTES + 17 * (size_t)i + 8);

		if (other > first && other < end)
			end = other;
	}
	return end;
}

/* As 3: smaller entries, whose start counts from themselves; the rest goes before the rows. */
static size_t as_version_3(const uint8_t *from, size_t size, uint8_t *to)
{
	uint32_t count = section_u32(from + 8), rows_at = HEADER_BYTES + section_u32(from + 24);
	size_t at = 0; /* in the new rows */

	memset(to, 0, BYTES_MAX);
	memcpy(to, from, HEADER_BYTES);
	to[2] = 3;
	to[3] |= 4;
	put(to + 24, 16 * (uint64_t)count, 4);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *old = from + HEADER_BYTES + 17 * (size_t)i;
		uint8_t *new = to + HEADER_BYTES + 16 * (size_t)i;
		uint8_t *rows = to + HEADER_BYTES + 16 * (size_t)count + at;
		uint32_t first = section_u32(old + 8);
		uint32_t last = end_of_rows(from, size, first);

		put(new, (uint64_t)(int64_t)(int32_t)section_u32(old) - (uint64_t)(new - to), 8);
		put(new + 8, section_u32(old + 4), 4);
		put(new + 12, at, 4);
		put(rows, section_u32(old + 12), 2);
		rows[2] = old[16];
		rows[4] = old[16] & 16 ? 16 : 0;
		memcpy(rows + 5, from + rows_at + first, last - first);
		at += 5 + last - first;
	}
	put(to + 16, at, 4);
	return HEADER_BYTES + 16 * (size_t)count + at;
}

static void versions_2_and_3_give_the_same_rows(void **state)
{
	static uint8_t old[BYTES_MAX], new[BYTES_MAX];
	static struct given rows[ROWS_MAX];
	uint64_t address;
	size_t size = read_golden("x86_64", old, &address), count;

	(void)state;
	open_section(old, size, address, EM_X86_64);
	read_all();
	count = found.rows_count;
	memcpy(rows, found.rows, sizeof(rows));
	open_section(new, as_version_2(old, size, new), address, EM_X86_64);
	read_all();
	assert_int_equal(found.rows_count, count);
	assert_memory_equal(found.rows, rows, count * sizeof(rows[0]));
	open_section(new, as_version_3(old, size, new), address, EM_X86_64);
	read_all();
	assert_int_equal(found.rows_count, count);
	assert_memory_equal(found.rows, rows, count * sizeof(rows[0]));
}

/* A section of version 3 with one function of 0x100 bytes at 0x1000. */
static size_t one_function(uint8_t *to, uint8_t abi, uint8_t info, uint8_t info2, uint8_t repeated,
			   uint16_t rows_count, const uint8_t *rows, size_t rows_len)
{
	memset(to, 0, BYTES_MAX);
	put(to, 0xdee2, 2);
	to[2] = 3;
	to[4] = abi;
	to[6] = abi == 3 ? 0xf8 : 0;
	put(to + 8, 1, 4);
	put(to + 12, rows_count, 4);
	put(to + 16, 5 + rows_len, 4);
	put(to + 24, 16, 4);
	put(to + HEADER_BYTES, 0x1000, 8);
	put(to + HEADER_BYTES + 8, 0x100, 4);
	put(to + HEADER_BYTES + 16, rows_count, 2);
	to[HEADER_BYTES + 18] = info;
	to[HEADER_BYTES + 19] = info2;
	to[HEADER_BYTES + 20] = repeated;
	memcpy(to + HEADER_BYTES + 21, rows, rows_len);
	return HEADER_BYTES + 21 + rows_len;
}

static void assert_rule(size_t row, struct unwind_rule expected)
{
	assert_true(row < found.rows_count);
	assert_memory_equal(&found.rows[row].rule, &expected, sizeof(expected));
}

static void flexible_entries_name_registers_and_dereference(void **state)
{
	/* start, info (words << 1), then words: control (register << 3 | dereference << 1 | 1) */
	static const uint8_t x86[] = {
		0,	    4 << 1,	 7 << 3 | 1,  8,	  0,	0,	4,
		4 << 1,	    10 << 3 | 1, 0,	      6 << 3 | 3, 16,	8,	5 << 1,
		6 << 3 | 3, 0xf8,	 0,	      6 << 3 | 3, 0,	16,	4 << 1,
		7 << 3 | 1, 24,		 16 << 3 | 1, 0,	  20,	6 << 1, 7 << 3 | 1,
		24,	    2,		 0xf8,	      2,	  0xf0, 24,	0,
	};
	static uint8_t bytes[BYTES_MAX];
	size_t size = one_function(bytes, 3, 0, 1, 0, 6, x86, sizeof(x86));
	struct unwind_rule rule = { .cfa = UNWIND_CFA_REGISTER,
				    .cfa_register = UNWIND_X86_SP,
				    .cfa_offset = 8,
				    .ra = UNWIND_VALUE_AT_CFA,
				    .ra_offset = -8 };

	(void)state;
	open_section(bytes, size, 0, EM_X86_64);
	read_all();
	assert_int_equal(found.rows_count, 6);
	assert_rule(0, rule);
	rule.cfa_register = 10;
	rule.cfa_offset = 0;
	rule.ra = UNWIND_VALUE_AT_REGISTER;
	rule.ra_register = 6;
	rule.ra_offset = 16;
	assert_rule(1, rule);
	rule = (struct unwind_rule){ .cfa = UNWIND_CFA_DEREF,
				     .cfa_register = 6,
				     .cfa_offset = -8,
				     .ra = UNWIND_VALUE_AT_CFA,
				     .ra_offset = -8,
				     .fp = UNWIND_VALUE_AT_REGISTER,
				     .fp_register = 6 };
	assert_rule(2, rule);
	rule = (struct unwind_rule){ .cfa = UNWIND_CFA_REGISTER,
				     .cfa_register = UNWIND_X86_SP,
				     .cfa_offset = 24,
				     .ra = UNWIND_VALUE_IN_REGISTER,
				     .ra_register = 16 };
	assert_rule(3, rule);
	rule = (struct unwind_rule){ .cfa = UNWIND_CFA_REGISTER,
				     .cfa_register = UNWIND_X86_SP,
				     .cfa_offset = 24,
				     .ra = UNWIND_VALUE_AT_CFA,
				     .ra_offset = -8,
				     .fp = UNWIND_VALUE_AT_CFA,
				     .fp_offset = -16 };
	assert_rule(4, rule);
	assert_rule(5, (struct unwind_rule){ .cfa = UNWIND_CFA_END });
}

/* One such rule must not make the whole table unusable. */
static void registers_that_rules_cannot_name_are_unsupported(void **state)
{
	/* Words of two bytes: CFA = rsp + 8; the return address in register 200. */
	static const uint8_t x86[] = { 0, 4 << 1 | 1 << 5, 7 << 3 | 1, 0, 8, 0, 0x41, 6, 0, 0 };
	static uint8_t bytes[BYTES_MAX];
	size_t size = one_function(bytes, 3, 0, 1, 0, 1, x86, sizeof(x86));

	(void)state;
	open_section(bytes, size, 0, EM_X86_64);
	read_all();
	assert_int_equal(found.rows_count, 1);
	assert_rule(0, (struct unwind_rule){ .cfa = UNWIND_CFA_REGISTER,
					     .cfa_register = UNWIND_X86_SP,
					     .cfa_offset = 8,
					     .ra = UNWIND_VALUE_UNSUPPORTED });
}

static void signal_frames_and_blocks_are_told(void **state)
{
	static const uint8_t rows[] = { 0, 1 << 1 | 1, 8, 3, 1 << 1 | 1, 16, 6, 1 << 1 | 1, 8 };
	static uint8_t bytes[BYTES_MAX];
	size_t size = one_function(bytes, 3, 0x80, 0, 0, 3, rows, sizeof(rows));

	(void)state;
	open_section(bytes, size, 0, EM_X86_64);
	read_all();
	assert_int_equal(found.rows_count, 3);
	assert_int_equal(found.rows[1].rule.flags, UNWIND_RULE_SIGNAL);
	/* 0x100 bytes of blocks of 24: ten whole ones and the first 16 bytes of another. */
	size = one_function(bytes, 3, 0x10, 0, 24, 3, rows, sizeof(rows));
	open_section(bytes, size, 0, EM_X86_64);
	read_all();
	assert_int_equal(found.rows_count, 33);
	assert_true(found.rows[31].address == 0x1000 + 240 + 3);
	assert_int_equal(found.rows[31].rule.cfa_offset, 16);
}

static void damage_is_refused_or_counted(void **state)
{
	static const uint8_t rows[] = { 0, 1 << 1 | 1, 8, 3, 1 << 1 | 1, 16, 3, 1 << 1 | 1, 8 };
	const struct unwind_function_sink functions = { .function = add_function };
	const struct unwind_row_sink sink = { .row = add_row };
	static uint8_t bytes[BYTES_MAX], golden[BYTES_MAX];
	size_t size = one_function(bytes, 3, 0, 0, 0, 3, rows, sizeof(rows));
	uint64_t address;
	struct err err;

	(void)state;
	open_section(bytes, size, 0, EM_X86_64);
	assert_int_equal(sframe_rows(&table, 0, &sink, &err), -ERR_INVALID); /* not in order */
	assert_int_equal(sframe_rows(&table, 1, &sink, &err), -ERR_INVALID);
	put(bytes + HEADER_BYTES + 8, UINT32_MAX, 4);
	bytes[HEADER_BYTES + 18] = 0x10; /* blocks */
	bytes[HEADER_BYTES + 20] = 16;
	assert_int_equal(sframe_rows(&table, 0, &sink, &err), -ERR_LIMIT);
	bytes[HEADER_BYTES + 18] = 3; /* no such type of rows */
	found.functions_count = 0;
	assert_int_equal(sframe_functions(&table, &functions, &err), 0);
	assert_int_equal(found.functions_count, 0);
	assert_int_equal(table.damaged_count, 1);
	bytes[2] = 4;
	assert_int_equal(sframe_open(&table, &section, EM_X86_64, &err), -ERR_UNSUPPORTED);
	bytes[2] = 3;
	assert_int_equal(sframe_open(&table, &section, EM_AARCH64, &err), -ERR_UNSUPPORTED);
	bytes[0] = 0;
	assert_int_equal(sframe_open(&table, &section, EM_X86_64, &err), -ERR_INVALID);
	size = read_golden("x86_64", golden, &address);
	for (size_t len = 0; len < size; len++) {
		section_reader_open_memory(&section, slice_from(golden, len), address, "cut");
		assert_int_equal(sframe_open(&table, &section, EM_X86_64, &err), -ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_those_readelf_prints),
		cmocka_unit_test(versions_2_and_3_give_the_same_rows),
		cmocka_unit_test(flexible_entries_name_registers_and_dereference),
		cmocka_unit_test(registers_that_rules_cannot_name_are_unsupported),
		cmocka_unit_test(signal_frames_and_blocks_are_told),
		cmocka_unit_test(damage_is_refused_or_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
