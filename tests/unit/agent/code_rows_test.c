/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of generated code from the unwinding information of jitdumps, as the kernel reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "agent/bpf/row.h"
#include "agent/jit/code_rows.h"
#include "agent/jit/jit_metrics.h"
#include "base/strbuf.h"

#define CODE 0x7f0000001000ull
#define ROOM 1000
#define BY_FP 1u
#define CFA(bytes) ((bytes) / 8u << 1)
#define FP_AT(slot) ((slot) << 11)
#define BX_AT(slot) ((slot) << 15)

/* What the kernel has. */
static struct {
	uint64_t number;
	struct code_line line;
} lines[ROOM];
static size_t lines_count, changes;

static int start(void **state)
{
	(void)state;
	lines_count = changes = 0;
	return 0;
}

static void put_line(void *context, uint64_t number, const struct code_line *line)
{
	size_t at = 0;

	(void)context;
	changes++;
	while (at < lines_count && lines[at].number != number)
		at++;
	if (!line) {
		assert_true(at < lines_count);
		lines[at] = lines[--lines_count];
		return;
	}
	assert_true(at < ROOM);
	lines_count += at == lines_count;
	lines[at].number = number;
	lines[at].line = *line;
}

static size_t take(struct code_rows *rows)
{
	size_t taken;

	changes = 0;
	taken = code_rows_take_changes(rows, SIZE_MAX, put_line, NULL);
	assert_int_equal(changes, taken);
	assert_false(rows->is_changed);
	return changes;
}

/* As bpf/walk.h finds it; 0 = nothing is known. */
static uint32_t rule_at(uint64_t address)
{
	for (size_t i = 0; i < lines_count; i++)
		if (lines[i].number == address >> CODE_LINE_SHIFT)
			return TABLE_ROW_RULE(lines[i].line.rows[row_word(
				lines[i].line.rows,
				TABLE_ROW_KEY(address & (CODE_LINE_BYTES - 1)))]);
	return 0;
}

/* Of one function, right behind its code of `bytes`. */
static struct strbuf frames_of(uint32_t bytes, const char *program, size_t program_len)
{
	static const uint8_t cie[] = { 0x14, 0,	   0,	 0, 0,	  0,	0, 0, 1,    'z', 'R', 0,
				       1,    0x78, 0x10, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,	 0,   0 };
	uint32_t behind = (bytes + 7) & ~7u;
	uint32_t head[] = { (uint32_t)(13 + program_len), sizeof(cie) + 4,
			    -(behind + (uint32_t)sizeof(cie) + 8), bytes };
	struct strbuf frames = { 0 };

	strbuf_add(&frames, cie, sizeof(cie));
	strbuf_add(&frames, head, sizeof(head));
	strbuf_add_byte(&frames, 0);
	strbuf_add(&frames, program, program_len);
	return frames;
}

static void load(struct code_rows *rows, uint64_t at, uint32_t bytes, struct slice frames)
{
	code_rows_load(rows, &(struct jitdump_code){ at, bytes }, frames);
}

#define PUSHES "\x41\x0e\x10\x83\x02" /* one byte on: CFA = rsp + 16, rbx is there */

/* Code that saves rbx in its first byte. */
static void load_pushing(struct code_rows *rows, uint64_t at, uint32_t bytes)
{
	struct strbuf frames = frames_of(bytes, PUSHES, sizeof(PUSHES) - 1);

	load(rows, at, bytes, strbuf_slice(&frames));
	strbuf_free(&frames);
}

/* What `node --perf-prof --perf-prof-unwinding-info` and `python3.13 -X perf_jit` wrote. */
static void what_is_behind_the_code_says_how_it_is_left(void **state)
{
	static const char v8[] =
		"\x18\0\0\0\0\0\0\0\x03zLR\0\x01\x78\x10\x02\xff\x1b\x0c\x07\x08\x90\x01\0\0\0\0"
		"\x20\0\0\0\x20\0\0\0\x94\xfe\xff\xff\x46\x01\0\0\0\x4f\x0e\x10\x86\x02\x43\x0d\x06"
		"\x02\x98\x0d\x07\x41\x0e\x08\x52\x0c\x06\x10\0\0\0\0\0";
	static const char cpython[] =
		"\x14\0\0\0\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0\x14\0\0\0"
		"\x1c\0\0\0\xd0\xff\xff\xff\x0b\0\0\0\0\x44\x0e\x10\x46\x0e\x08\0";
	struct code_rows rows = { 0 };

	(void)state;
	code_rows_begin(&rows, ROOM);
	load(&rows, 0x7f0cd9fc6ac0, 328, slice_from(v8, sizeof(v8) - 1));
	load(&rows, CODE, 11, slice_from(cpython, sizeof(cpython) - 1));
	take(&rows);
	assert_int_equal(rule_at(0x7f0cd9fc6ac0), CFA(8));
	assert_int_equal(rule_at(0x7f0cd9fc6ac0 + 15), CFA(16) | FP_AT(1));
	assert_int_equal(rule_at(0x7f0cd9fc6ac0 + 18), BY_FP | CFA(16) | FP_AT(1));
	assert_int_equal(rule_at(0x7f0cd9fc6ac0 + 18 + 0x97), BY_FP | CFA(16) | FP_AT(1));
	assert_int_equal(rule_at(0x7f0cd9fc6ac0 + 325), BY_FP | CFA(16) | FP_AT(1));
	assert_int_equal(rule_at(0x7f0cd9fc6ac0 + 326), 0); /* behind it */
	assert_int_equal(rule_at(CODE), CFA(8));
	assert_int_equal(rule_at(CODE + 5), CFA(16));
	assert_int_equal(rule_at(CODE + 10), CFA(8));
	assert_int_equal(rule_at(CODE + 11), 0);
	code_rows_fini(&rows);
}

/* What `llvm-jitlink-19 -perf-support` wrote of three functions without frame pointers. */
static void what_has_an_address_is_of_many_functions(void **state)
{
	static const char llvm[] =
		"\x14\0\0\0\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0\x14\0\0\0"
		"\x1c\0\0\0\xe0\x1f\0\0\x7a\0\0\0\0\x44\x0e\x30\x02\x75\x0e\x08\x18\0\0\0\x34\0\0\0"
		"\x48\x20\0\0\x27\0\0\0\0\x41\x0e\x10\x83\x02\x65\x0e\x08\0\0\0\x18\0\0\0\x50\0\0\0"
		"\x5c\x20\0\0\x43\0\0\0\0\x41\x0e\x10\x83\x02\x02\x41\x0e\x08\0\0\0\0\0\0";
	const uint64_t base = 0x7ff87f400000;
	struct jitdump_unwinding unwinding = { slice_from(llvm, sizeof(llvm) - 1), base };
	struct code_rows rows = { 0 };

	(void)state;
	code_rows_begin(&rows, ROOM);
	load_pushing(&rows, base + 0x2040, 0x80); /* what was there before */
	code_rows_tell(&rows, &unwinding);
	load(&rows, base + 0x2000, 0x7a, slice_from(NULL, 0));
	load(&rows, base + 0x2080, 0x27, slice_from(NULL, 0));
	take(&rows);
	assert_int_equal(rule_at(base + 0x2003), CFA(8));
	assert_int_equal(rule_at(base + 0x2004), CFA(0x30));
	assert_int_equal(rule_at(base + 0x2079), CFA(8));
	assert_int_equal(rule_at(base + 0x207a), 0);
	assert_int_equal(rule_at(base + 0x2081), CFA(16) | BX_AT(1));
	assert_int_equal(rule_at(base + 0x20a6), CFA(8) | BX_AT(1)); /* still there */
	assert_int_equal(rule_at(base + 0x20b1), CFA(16) | BX_AT(1));
	assert_int_equal(rule_at(base + 0x20f3), 0);
	assert_int_equal(lines_count, 2);
	code_rows_fini(&rows);
}

static void newer_code_replaces_what_was_there(void **state)
{
	struct code_rows rows = { 0 };

	(void)state;
	code_rows_begin(&rows, ROOM);
	load_pushing(&rows, CODE, 0x200);
	assert_int_equal(take(&rows), 4);
	assert_int_equal(take(&rows), 0);
	load(&rows, CODE + 0x140, 0x20, slice_from(NULL, 0));
	load_pushing(&rows, CODE + 0x20, 0x10);
	assert_int_equal(take(&rows), 2);
	assert_int_equal(rule_at(CODE + 0x1f), CFA(16) | BX_AT(1));
	assert_int_equal(rule_at(CODE + 0x20), CFA(8)); /* its beginning */
	assert_int_equal(rule_at(CODE + 0x2f), CFA(16) | BX_AT(1));
	assert_int_equal(rule_at(CODE + 0x13f), CFA(16) | BX_AT(1));
	assert_int_equal(rule_at(CODE + 0x140), 0);
	assert_int_equal(rule_at(CODE + 0x15f), 0);
	assert_int_equal(rule_at(CODE + 0x160), CFA(16) | BX_AT(1));
	load(&rows, CODE - 0x1000, 0x10000000, slice_from(NULL, 0)); /* far more than is known */
	assert_int_equal(take(&rows), 4);
	assert_int_equal(lines_count, 0);
	code_rows_fini(&rows);
}

static void changes_can_be_taken_bit_by_bit(void **state)
{
	struct code_rows rows = { 0 };

	(void)state;
	code_rows_begin(&rows, ROOM);
	load_pushing(&rows, CODE, 0x200);
	assert_int_equal(code_rows_take_changes(&rows, 3, put_line, NULL), 3);
	assert_int_equal(lines_count, 3);
	assert_true(rows.is_changed);
	code_rows_begin(&rows, ROOM);
	load(&rows, CODE, 0x80, slice_from(NULL, 0));
	load(&rows, CODE + 0x180, 0x80, slice_from(NULL, 0)); /* nobody has that one */
	assert_int_equal(take(&rows), 1);
	assert_int_equal(lines_count, 2);
	assert_int_equal(rule_at(CODE), 0);
	assert_int_equal(rule_at(CODE + 0x80), CFA(16) | BX_AT(1));
	code_rows_fini(&rows);
}

static void lines_of_which_nothing_is_known_give_room(void **state)
{
	struct code_rows rows = { 0 };

	(void)state;
	for (unsigned round = 0; round < 10; round++) {
		code_rows_begin(&rows, 8);
		load_pushing(&rows, CODE + 0x10000 * round, 8 * CODE_LINE_BYTES);
		assert_int_equal(take(&rows), 8);
		assert_int_equal(lines_count, 8);
		assert_int_equal(rule_at(CODE + 0x10000 * round + 1), CFA(16) | BX_AT(1));
		code_rows_forget(&rows);
		assert_int_equal(take(&rows), 8);
		assert_int_equal(lines_count, 0);
	}
	code_rows_fini(&rows);
}

static void without_room_code_has_no_rows(void **state)
{
	int64_t dropped = metric_get(&jit_unwinding_dropped);
	struct code_rows rows = { 0 };

	(void)state;
	code_rows_begin(&rows, 2);
	load_pushing(&rows, CODE, 4 * CODE_LINE_BYTES);
	load_pushing(&rows, CODE + 0x10000, 8);
	assert_int_equal(take(&rows), 2);
	assert_int_equal(rule_at(CODE + CODE_LINE_BYTES), CFA(16) | BX_AT(1));
	assert_int_equal(rule_at(CODE + 2 * CODE_LINE_BYTES), 0);
	assert_int_equal(rule_at(CODE + 0x10000), 0);
	assert_int_equal(metric_get(&jit_unwinding_dropped), dropped + 2);
	assert_true(rows.count <= 2);
	code_rows_fini(&rows);
}

/* What a row cannot say, and what is too much for a line, is unknown, and is no mistake. */
static void what_a_line_cannot_say_is_unknown(void **state)
{
	struct strbuf program = { 0 }, frames;
	struct code_rows rows = { 0 };

	(void)state;
	code_rows_begin(&rows, ROOM);
	for (unsigned i = 2; i <= 20; i++) {
		strbuf_add(&program, "\x41\x0e", 2);
		strbuf_add_byte(&program, (char)(8 * (i & 15)));
	}
	frames = frames_of(100, program.data, program.len);
	load(&rows, CODE, 100, strbuf_slice(&frames));
	strbuf_free(&frames);
	/* CFA = rsp + 16384; then = r10 + 0, as where a stack is realigned. */
	frames = frames_of(64, "\x41\x0e\x80\x80\x01\x41\x0c\x0a\0", 9);
	load(&rows, CODE + 0x1000, 64, strbuf_slice(&frames));
	strbuf_free(&frames);
	take(&rows);
	assert_int_equal(rule_at(CODE + 13), CFA(8 * 15 - 8));
	assert_int_equal(rule_at(CODE + 50), 0);
	assert_int_equal(rule_at(CODE + 0x1000), CFA(8));
	assert_int_equal(rule_at(CODE + 0x1001), 0);
	assert_int_equal(rule_at(CODE + 0x1002), 0);
	strbuf_free(&program);
	code_rows_fini(&rows);
}

static void nobody_makes_more_work_than_is_allowed(void **state)
{
	int64_t dropped = metric_get(&jit_unwinding_dropped);
	struct jitdump_unwinding far = { .address = CODE };
	struct strbuf frames = frames_of(0x10000000, PUSHES, sizeof(PUSHES) - 1);
	struct code_rows rows = { 0 };
	unsigned loads = 0;

	(void)state;
	code_rows_begin(&rows, SIZE_MAX);
	assert_int_equal(rows.room, CODE_ROWS_LINES_MAX);
	load(&rows, CODE, 0x10000000, strbuf_slice(&frames)); /* more than a program's code */
	far.frames = strbuf_slice(&frames);
	code_rows_tell(&rows, &far);
	assert_int_equal(rows.count, 0);
	assert_int_equal(metric_get(&jit_unwinding_dropped), dropped + 2);
	for (; !code_rows_is_spent(&rows); loads++)
		load_pushing(&rows, CODE, CODE_ROWS_BYTES_MAX);
	assert_in_range(loads, 1, 2); /* then it is another process's turn */
	assert_true(rows.work < CODE_ROWS_WORK_MAX * 3);
	assert_int_equal(rows.count, CODE_ROWS_LINES_MAX);
	code_rows_begin(&rows, SIZE_MAX);
	assert_false(code_rows_is_spent(&rows));
	assert_true(code_rows_bytes(&rows) < 8 << 20);
	strbuf_free(&frames);
	code_rows_fini(&rows);
}

/* Records as small as may be are many in a turn: of each counts that it is read. */
static void being_told_nothing_is_work_too(void **state)
{
	struct jitdump_unwinding nothing = { .address = CODE };
	struct code_rows rows = { 0 };
	unsigned told = 0, loads = 0;

	(void)state;
	code_rows_begin(&rows, ROOM);
	for (; !code_rows_is_spent(&rows) && told < CODE_ROWS_WORK_MAX; told++)
		code_rows_tell(&rows, &nothing);
	assert_in_range(told, 1, CODE_ROWS_WORK_MAX / 4);
	code_rows_begin(&rows, ROOM);
	for (; !code_rows_is_spent(&rows) && loads < CODE_ROWS_WORK_MAX; loads++)
		load(&rows, CODE, 1, slice_from("", 1));
	assert_in_range(loads, 1, CODE_ROWS_WORK_MAX / 4);
	code_rows_fini(&rows);
}

#define TURNS_CIE_BYTES 4096u /* two of them have the same place in the reader's cache */
#define TURNS_FUNCTIONS 1000

/* Functions whose CIEs are as large as may be; `turns`: two CIEs take turns. */
static struct strbuf frames_with_large_cies(uint64_t address, bool turns)
{
	static const uint8_t cie[] = { 0,    0,	   0, 0,    1,	  'z', 'R', 0,	  1,
				       0x78, 0x10, 1, 0x1b, 0x0c, 7,   8,   0x90, 1 };
	struct strbuf frames = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		uint32_t len = TURNS_CIE_BYTES - 4;

		strbuf_add(&frames, &len, sizeof(len));
		memset(strbuf_reserve(&frames, len), 0, len);
		memcpy(frames.data + frames.len, cie, sizeof(cie));
		frames.len += len;
	}
	for (uint32_t i = 0; i < TURNS_FUNCTIONS; i++) {
		uint32_t at = (uint32_t)frames.len, cie_at = turns ? i % 2 * TURNS_CIE_BYTES : 0;
		uint64_t code = CODE + (uint64_t)i * CODE_LINE_BYTES;
		uint32_t head[] = { 20, at + 4 - cie_at, (uint32_t)(code - (address + at + 8)),
				    64 };

		strbuf_add(&frames, head, sizeof(head));
		strbuf_add(&frames, "\0\x41\x0e\x10\0\0\0", 8);
	}
	strbuf_add(&frames, "\0\0\0", 4);
	return frames;
}

static void what_is_read_over_and_over_is_not_believed(void **state)
{
	for (int turns = 0; turns < 2; turns++) {
		struct strbuf frames = frames_with_large_cies(CODE + (1 << 20), turns);
		struct code_rows rows = { 0 };

		start(state);
		code_rows_begin(&rows, ROOM);
		code_rows_tell(&rows, &(struct jitdump_unwinding){ strbuf_slice(&frames),
								   CODE + (1 << 20) });
		take(&rows);
		for (uint64_t i = 0; i < TURNS_FUNCTIONS; i++)
			assert_int_equal(rule_at(CODE + i * CODE_LINE_BYTES + 1),
					 turns ? 0 : CFA(16));
		strbuf_free(&frames);
		code_rows_fini(&rows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_behind_the_code_says_how_it_is_left, start),
		cmocka_unit_test_setup(what_has_an_address_is_of_many_functions, start),
		cmocka_unit_test_setup(newer_code_replaces_what_was_there, start),
		cmocka_unit_test_setup(changes_can_be_taken_bit_by_bit, start),
		cmocka_unit_test_setup(lines_of_which_nothing_is_known_give_room, start),
		cmocka_unit_test_setup(without_room_code_has_no_rows, start),
		cmocka_unit_test_setup(what_a_line_cannot_say_is_unknown, start),
		cmocka_unit_test_setup(what_is_read_over_and_over_is_not_believed, start),
		cmocka_unit_test_setup(nobody_makes_more_work_than_is_allowed, start),
		cmocka_unit_test_setup(being_told_nothing_is_work_too, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
