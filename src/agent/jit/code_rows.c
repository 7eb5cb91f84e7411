/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jit/code_rows.h"

#include <elf.h>
#include <stdlib.h>

#include "agent/jit/jit_metrics.h"
#include "agent/unwind/row_rule.h"
#include "base/hash.h"
#include "base/mem.h"
#include "codec/elf/cfi.h"

#define CODE_ALIGNMENT 8 /* of .eh_frame behind the code */
#define READ_FACTOR 4	 /* how often, on average, its bytes may be read */
#define READ_BYTES_MIN 4096u
#define LINE_BYTES 16u /* of .eh_frame: reading them is the work of a line */
#define LISTEN_WORK 4u /* in lines: of being told anything, or nothing */

/* A line while it is changed: the rule of each of its bytes. */
struct opened {
	struct code_rows *rows;
	struct code_rows_line *line; /* NULL = there is no room for it */
	uint64_t number;
	bool is_open, is_refused; /* there was no room for one */
	uint32_t rules[CODE_LINE_BYTES];
};

struct function {
	uint64_t start, end, cookie;
};

/* What is told at once. */
struct telling {
	struct opened opened;
	struct cfi cfi;
	uint64_t start, end; /* what is told of other code does not count */
	struct function *functions;
	size_t count, capacity;
	const struct function *function; /* at hand, with its last row */
	uint64_t row_at;
	uint32_t row_rule;
};

void code_rows_fini(struct code_rows *rows)
{
	free(rows->items);
	idmap_free(&rows->by_number);
	*rows = (struct code_rows){ 0 };
}

bool code_rows_is_spent(const struct code_rows *rows)
{
	return rows->work >= CODE_ROWS_WORK_MAX;
}

size_t code_rows_bytes(const struct code_rows *rows)
{
	return rows->capacity * sizeof(*rows->items) +
	       (rows->by_number.slots ? (rows->by_number.mask + 1) * sizeof(uint64_t) : 0);
}

/* ---- lines ---- */

static bool has_number(const void *context, uint32_t id, const void *key)
{
	const struct code_rows *rows = context;
	const uint64_t *number = key;

	return rows->items[id].number == *number;
}

static uint32_t find(const struct code_rows *rows, uint64_t number)
{
	return idmap_find(&rows->by_number, hash_bytes(&number, sizeof(number)), has_number, rows,
			  &number);
}

static void add(struct code_rows *rows, const struct code_rows_line *line)
{
	idmap_add(&rows->by_number, hash_bytes(&line->number, sizeof(line->number)),
		  (uint32_t)rows->count);
	mem_grow(rows->items, rows->count, rows->capacity);
	rows->items[rows->count++] = *line;
}

/* Leaves out the lines of which nothing is known, when that is worth it. */
static void shrink(struct code_rows *rows)
{
	size_t count = rows->count, gone = 0;

	for (size_t i = 0; i < count; i++)
		gone += !rows->items[i].is_known && !rows->items[i].is_changed;
	if (gone <= count / 2)
		return;
	idmap_clear(&rows->by_number);
	rows->count = 0;
	for (size_t i = 0; i < count; i++)
		if (rows->items[i].is_known || rows->items[i].is_changed)
			add(rows, &rows->items[i]);
}

void code_rows_begin(struct code_rows *rows, size_t room)
{
	rows->work = 0;
	rows->room = room < CODE_ROWS_LINES_MAX ? room : CODE_ROWS_LINES_MAX;
	if (rows->count)
		shrink(rows);
}

static void unpack(const struct code_line *line, uint32_t rules[CODE_LINE_BYTES])
{
	uint32_t words = 1, rule = TABLE_ROW_RULE(line->rows[0]);

	for (uint32_t at = 0; at < CODE_LINE_BYTES; at++) {
		if (words < TABLE_LINE_WORDS && TABLE_ROW_OFFSET(line->rows[words]) == at)
			rule = TABLE_ROW_RULE(line->rows[words++]);
		rules[at] = rule;
	}
}

/* With more rows than fit the last one knows nothing. */
static struct code_line pack(const uint32_t rules[CODE_LINE_BYTES])
{
	struct code_line line = { .rows = { TABLE_ROW(0, rules[0]) } };
	uint32_t words = 1, rule = rules[0];

	for (uint32_t at = 1; at < CODE_LINE_BYTES && words < TABLE_LINE_WORDS; at++) {
		if (rules[at] == rule)
			continue;
		rule = words == TABLE_LINE_WORDS - 1 ? 0 : rules[at];
		line.rows[words++] = TABLE_ROW(at, rule);
	}
	for (; words < TABLE_LINE_WORDS; words++)
		line.rows[words] = TABLE_ROW_UNUSED;
	return line;
}

static bool says_something(const struct code_line *line)
{
	for (uint32_t i = 0; i < TABLE_LINE_WORDS && line->rows[i] != TABLE_ROW_UNUSED; i++)
		if (TABLE_ROW_RULE(line->rows[i]))
			return true;
	return false;
}

static void set(struct code_rows *rows, struct code_rows_line *line,
		const uint32_t rules[CODE_LINE_BYTES])
{
	struct code_line packed = pack(rules);

	if (!memcmp(&packed, &line->line, sizeof(packed)))
		return;
	line->line = packed;
	line->is_known = says_something(&packed);
	line->is_changed = rows->is_changed = true;
}

static void close_line(struct opened *opened)
{
	if (opened->is_open && opened->line)
		set(opened->rows, opened->line, opened->rules);
	opened->is_open = false;
}

static void open_line(struct opened *opened, uint64_t number)
{
	static const uint32_t nothing[CODE_LINE_BYTES];
	struct code_rows *rows = opened->rows;
	uint32_t id = find(rows, number);

	close_line(opened);
	rows->work++;
	if (id == IDMAP_NONE && rows->count < rows->room) {
		id = (uint32_t)rows->count;
		add(rows, &(struct code_rows_line){ .number = number, .line = pack(nothing) });
	}
	opened->is_refused |= id == IDMAP_NONE;
	opened->line = id == IDMAP_NONE ? NULL : &rows->items[id];
	opened->number = number;
	opened->is_open = true;
	if (opened->line)
		unpack(&opened->line->line, opened->rules);
}

static void put(struct opened *opened, uint64_t start, uint64_t end, uint32_t rule)
{
	for (uint64_t at = start; at < end; at++) {
		uint64_t number = at >> CODE_LINE_SHIFT;

		if (!opened->is_open || opened->number != number)
			open_line(opened, number);
		opened->rules[at & (CODE_LINE_BYTES - 1)] = rule;
	}
}

static void clear_in(struct code_rows *rows, struct code_rows_line *line, uint64_t start,
		     uint64_t end)
{
	uint64_t first = line->number << CODE_LINE_SHIFT;
	uint32_t rules[CODE_LINE_BYTES];

	unpack(&line->line, rules);
	for (uint32_t i = 0; i < CODE_LINE_BYTES; i++)
		if (first + i >= start && first + i < end)
			rules[i] = 0;
	set(rows, line, rules);
}

/* By the lines that there are, or by those that there may be, whatever are fewer. */
static void clear(struct code_rows *rows, uint64_t start, uint64_t end)
{
	uint64_t first = start >> CODE_LINE_SHIFT, last = (end - 1) >> CODE_LINE_SHIFT;

	if (!rows->count || start >= end)
		return;
	if (last - first >= rows->count) {
		rows->work += rows->count;
		for (size_t i = 0; i < rows->count; i++)
			if (rows->items[i].number - first <= last - first)
				clear_in(rows, &rows->items[i], start, end);
		return;
	}
	rows->work += last - first + 1;
	for (uint64_t number = first; number <= last; number++) {
		uint32_t id = find(rows, number);

		if (id != IDMAP_NONE)
			clear_in(rows, &rows->items[id], start, end);
	}
}

/* What a line of a block says is not looked at. */
static void set_block(struct code_rows *rows, struct code_rows_line *line, bool is_framed)
{
	if (line->is_known == is_framed)
		return;
	line->is_known = is_framed;
	line->is_changed = rows->is_changed = true;
}

void code_rows_put_block(struct code_rows *rows, uint64_t block, bool is_framed)
{
	uint64_t number = CODE_LINE_OF_BLOCK(block);
	uint32_t id = find(rows, number);

	if (id == IDMAP_NONE && is_framed && rows->count < rows->room) {
		id = (uint32_t)rows->count;
		add(rows, &(struct code_rows_line){ .number = number });
	}
	if (id != IDMAP_NONE)
		set_block(rows, &rows->items[id], is_framed);
}

void code_rows_forget_blocks(struct code_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->items[i].number >= CODE_LINE_OF_BLOCK(0))
			set_block(rows, &rows->items[i], false);
}

void code_rows_forget(struct code_rows *rows)
{
	clear(rows, 0, UINT64_MAX);
	rows->told_start = rows->told_end = 0;
}

size_t code_rows_take_changes(struct code_rows *rows, size_t max, code_rows_put_f *put_line,
			      void *context)
{
	size_t i, taken = 0;

	if (!rows->is_changed)
		return 0;
	for (i = 0; i < rows->count && taken < max; i++) {
		struct code_rows_line *line = &rows->items[i];

		if (!line->is_changed)
			continue;
		if (line->is_known || line->is_taken) {
			put_line(context, line->number, line->is_known ? &line->line : NULL);
			taken++;
		}
		line->is_taken = line->is_known;
		line->is_changed = false;
	}
	rows->is_changed = i < rows->count;
	return taken;
}

/* ---- rows ---- */

/* 0 = it cannot be said. rbx is seldom asked for: it is given up first. */
static uint32_t rule_of(const struct unwind_rule *rule)
{
	struct unwind_rule without_bx = *rule;
	uint32_t packed;

	without_bx.bx = UNWIND_VALUE_SAME;
	without_bx.bx_offset = 0;
	if (!row_rule_pack(rule, &packed) && !row_rule_pack(&without_bx, &packed))
		return 0;
	return TABLE_RULE_IS_BARE(packed) ? 0 : packed;
}

/* Up to the next row, or to the function's end. */
static void put_last_row(struct telling *telling, uint64_t end)
{
	uint64_t start = telling->row_at > telling->start ? telling->row_at : telling->start;

	if (end > telling->end)
		end = telling->end;
	put(&telling->opened, start, end, telling->row_rule);
}

static int take_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct telling *telling = context;

	if (address < telling->row_at || address >= telling->function->end)
		return 0;
	put_last_row(telling, address);
	telling->row_at = address;
	telling->row_rule = rule_of(rule);
	return 0;
}

static void take_rows(struct telling *telling, const struct function *function)
{
	struct unwind_row_sink sink = { take_row, telling };
	struct err err;

	telling->function = function;
	telling->row_at = function->start;
	telling->row_rule = 0;
	if (cfi_rows(&telling->cfi, function->cookie, &sink, &err))
		telling->row_rule = 0;
	put_last_row(telling, function->end);
}

static int take_function(void *context, uint64_t start, uint64_t end, uint64_t cookie)
{
	struct telling *telling = context;

	if (start >= telling->end || end <= telling->start || start >= end)
		return 0;
	if (telling->count == CODE_ROWS_FUNCTIONS_MAX || end - start > CODE_ROWS_BYTES_MAX) {
		metric_add(&jit_unwinding_dropped, 1);
		return 0;
	}
	mem_grow(telling->functions, telling->count, telling->capacity);
	telling->functions[telling->count++] = (struct function){ start, end, cookie };
	return 0;
}

/* The functions of an .eh_frame at an address that have code between start and end. */
static struct telling *listen(struct code_rows *rows, struct slice frames, uint64_t address,
			      uint64_t start, uint64_t end)
{
	struct telling *telling = mem_new(struct telling);
	struct unwind_function_sink sink = { take_function, telling };
	struct section_reader *section = mem_new(struct section_reader);
	struct err err;

	telling->opened.rows = rows;
	telling->start = start;
	telling->end = end;
	section_reader_open_memory(section, frames, address, "a jitdump");
	rows->work += LISTEN_WORK + frames.len / LINE_BYTES;
	if (!cfi_open(&telling->cfi, CFI_EH_FRAME, EM_X86_64, section, &err)) {
		telling->cfi.work_left_bytes = READ_BYTES_MIN + READ_FACTOR * frames.len;
		if (cfi_list(&telling->cfi, true, &sink, &err))
			telling->count = 0;
	}
	free(section);
	return telling;
}

static void take_all_rows(struct telling *telling)
{
	uint64_t left_bytes = CODE_ROWS_BYTES_MAX;

	for (size_t i = 0; i < telling->count; i++) {
		const struct function *function = &telling->functions[i];
		uint64_t bytes = function->end - function->start;

		telling->opened.is_refused = bytes > left_bytes;
		if (bytes <= left_bytes) {
			left_bytes -= bytes;
			take_rows(telling, function);
		}
		metric_add(telling->opened.is_refused ? &jit_unwinding_dropped : &jit_unwinding, 1);
	}
	close_line(&telling->opened);
}

static void telling_free(struct telling *telling)
{
	free(telling->functions);
	free(telling);
}

void code_rows_load(struct code_rows *rows, const struct jitdump_code *code, struct slice frames)
{
	uint64_t end = code->start + code->bytes, behind;
	struct telling *telling;

	if (!frames.len && code->start >= rows->told_start && end <= rows->told_end)
		return;
	clear(rows, code->start, end);
	if (!frames.len)
		return;
	behind = ((uint64_t)code->bytes + CODE_ALIGNMENT - 1) & ~(uint64_t)(CODE_ALIGNMENT - 1);
	telling = listen(rows, frames, code->start + behind, code->start, end);
	take_all_rows(telling);
	telling_free(telling);
}

void code_rows_tell(struct code_rows *rows, const struct jitdump_unwinding *unwinding)
{
	struct telling *telling =
		listen(rows, unwinding->frames, unwinding->address, 0, UINT64_MAX);
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < telling->count; i++) {
		if (telling->functions[i].start < low)
			low = telling->functions[i].start;
		if (telling->functions[i].end > high)
			high = telling->functions[i].end;
	}
	/* What lies far apart is not one piece of memory that code was generated into. */
	if (low < high && high - low <= CODE_ROWS_BYTES_MAX) {
		rows->told_start = low;
		rows->told_end = high;
		clear(rows, low, high);
		take_all_rows(telling);
	} else {
		metric_add(&jit_unwinding_dropped, (int64_t)telling->count);
	}
	telling_free(telling);
}
