/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/gopclntab_lines.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/order/bisect.h"

#define VALUES_MAX 65536u /* of one table of one function */
#define CALLS_MAX 65536u  /* inlined into one function */
#define TABLES_MAX 16u	  /* of one function: there are 4 or 5 */
#define INLINE_VALUES 2u  /* PCDATA_InlTreeIndex */
#define INLINE_TREE 3u	  /* FUNCDATA_InlTree, since Go 1.16 */
#define FILE_UNKNOWN UINT32_MAX
#define NONE UINT32_MAX

/* Where the members of a function's record (runtime._func) are. */
struct record_layout {
	uint8_t name, values_file, values_line, values_count, unit, start_line, data_count, end;
};

struct record {
	uint32_t name, values_file, values_line, unit, start_line;
	uint32_t inline_values; /* NONE: none */
	uint64_t tree;		/* offset in the data; UINT64_MAX: none */
};

/* A pass over one table of (value, up to which address). */
struct walk {
	const struct gopclntab_lines *lines;
	uint64_t at, address;
	int32_t value;
	uint32_t count;
};

static const struct record_layout record_layouts[] = {
	[GOPCLNTAB_GO_1_2] = { 8, 24, 28, 32, 0, 0, 0, 40 },
	[GOPCLNTAB_GO_1_16] = { 8, 24, 28, 32, 36, 0, 43, 44 },
	[GOPCLNTAB_GO_1_18] = { 4, 20, 24, 28, 32, 0, 39, 40 },
	[GOPCLNTAB_GO_1_20] = { 4, 20, 24, 28, 32, 36, 43, 44 },
};

void gopclntab_function_free(struct gopclntab_function *function)
{
	free(function->rows);
	free(function->calls);
	free(function->spans);
	*function = (struct gopclntab_function){ .start = 0 };
}

static bool view(struct slice bytes, uint64_t at, size_t len, const uint8_t **ret)
{
	if (at > bytes.len || bytes.len - at < len)
		return false;
	*ret = (const uint8_t *)bytes.data + at;
	return true;
}

static bool read_u32(struct slice bytes, uint64_t at, uint32_t *ret)
{
	const uint8_t *p;

	if (!view(bytes, at, 4, &p))
		return false;
	*ret = section_u32(p);
	return true;
}

/* Text up to a NUL; empty where there is none. */
static struct slice text_at(struct slice bytes, uint64_t at)
{
	struct slice text = at < bytes.len ? slice_tail(bytes, (size_t)at) : SLICE_LITERAL("");
	size_t len = strnlen(text.data, text.len);

	return len < text.len ? slice_from(text.data, len) : SLICE_LITERAL("");
}

static struct slice name_at(const struct gopclntab_lines *lines, uint32_t name)
{
	return text_at(lines->table, lines->layout.names_at + name);
}

/* Files are numbered within a compilation unit, whose numbers lead to offsets of names. */
static struct slice file_at(const struct gopclntab_lines *lines, const struct record *record,
			    int32_t file)
{
	const struct gopclntab_layout *layout = &lines->layout;
	uint32_t offset;

	if (file < 0)
		return SLICE_LITERAL("");
	if (layout->version == GOPCLNTAB_GO_1_2) {
		if (!read_u32(lines->table, layout->functions_at + layout->functions_count * 16 + 8,
			      &offset) ||
		    !read_u32(lines->table, (uint64_t)offset + 4 * (uint64_t)file, &offset))
			return SLICE_LITERAL("");
		return text_at(lines->table, offset);
	}
	if (!read_u32(lines->table,
		      layout->units_at + 4 * ((uint64_t)record->unit + (uint64_t)file), &offset) ||
	    offset == FILE_UNKNOWN)
		return SLICE_LITERAL("");
	return text_at(lines->table, layout->files_at + offset);
}

static bool next_varint(struct walk *walk, uint32_t *ret)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		const uint8_t *p;

		if (!view(walk->lines->table, walk->at, 1, &p))
			return false;
		walk->at++;
		value |= (uint32_t)(*p & 0x7f) << shift;
		if (!(*p & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

/* False at the end, or where it is damaged; else walk->value holds up to walk->address. */
static bool next_value(struct walk *walk)
{
	uint32_t change, distance;
	uint64_t bytes;

	if (walk->count == VALUES_MAX || !next_varint(walk, &change) || (!change && walk->count) ||
	    !next_varint(walk, &distance) || !distance)
		return false;
	bytes = (uint64_t)distance * walk->lines->layout.quantum;
	if (bytes > UINT64_MAX - walk->address)
		return false;
	walk->count++;
	walk->value =
		(int32_t)((uint32_t)walk->value + (change & 1 ? ~(change >> 1) : change >> 1));
	walk->address += bytes;
	return true;
}

static struct walk walk_start(const struct gopclntab_lines *lines, uint32_t values, uint64_t start)
{
	return (struct walk){
		.lines = lines,
		.at = lines->layout.values_at + values,
		.address = start,
		.value = -1,
	};
}

/* The address of a function's inline tree becomes an offset in the data. */
static uint64_t tree_offset(const struct gopclntab_lines *lines, const uint8_t *p)
{
	uint64_t address;

	if (lines->layout.version < GOPCLNTAB_GO_1_18)
		address = section_u64(p);
	else if (section_u32(p) == NONE || !lines->function_data_address)
		return UINT64_MAX;
	else
		address = lines->function_data_address + section_u32(p);
	if (address < lines->data_address || address - lines->data_address >= lines->data.len)
		return UINT64_MAX;
	return address - lines->data_address;
}

static bool read_record(const struct gopclntab_lines *lines, uint64_t offset, struct record *ret)
{
	const struct record_layout *layout = &record_layouts[lines->layout.version];
	uint64_t at = lines->layout.records_at + offset;
	bool is_wide = lines->layout.version < GOPCLNTAB_GO_1_18;
	uint32_t values_count, trees_at, tree_bytes = is_wide ? 8 : 4;
	const uint8_t *p;

	if (offset > lines->table.len || !view(lines->table, at, layout->end, &p))
		return false;
	*ret = (struct record){
		.name = section_u32(p + layout->name),
		.values_file = section_u32(p + layout->values_file),
		.values_line = section_u32(p + layout->values_line),
		.unit = layout->unit ? section_u32(p + layout->unit) : 0,
		.start_line = layout->start_line ? section_u32(p + layout->start_line) : 0,
		.inline_values = NONE,
		.tree = UINT64_MAX,
	};
	values_count = section_u32(p + layout->values_count);
	if (!layout->data_count || p[layout->data_count] <= INLINE_TREE ||
	    values_count <= INLINE_VALUES || values_count > TABLES_MAX)
		return true;
	trees_at = layout->end + 4 * values_count;
	if (is_wide)
		trees_at = (trees_at + 7) & ~7u;
	if (!view(lines->table, at, trees_at + (INLINE_TREE + 1) * tree_bytes, &p))
		return true;
	ret->inline_values = section_u32(p + layout->end + 4 * INLINE_VALUES);
	ret->tree = tree_offset(lines, p + trees_at + INLINE_TREE * tree_bytes);
	return true;
}

/* Start and record of a function; the entry behind the last one has a start alone. */
static bool read_entry(const struct gopclntab_lines *lines, uint64_t index, uint64_t *ret_start,
		       uint64_t *ret_record)
{
	const struct gopclntab_layout *layout = &lines->layout;
	bool is_wide = layout->version < GOPCLNTAB_GO_1_18;
	size_t bytes = is_wide ? 16 : 8;
	bool is_end = index == layout->functions_count;
	const uint8_t *p;

	if (!view(lines->table, layout->functions_at + index * bytes, is_end ? bytes / 2 : bytes,
		  &p))
		return false;
	*ret_start = is_wide ? section_u64(p) : layout->text + section_u32(p);
	*ret_record = is_end ? 0 : is_wide ? section_u64(p + 8) : section_u32(p + 4);
	return true;
}

/* Lines and files are tables of their own: a row begins where either changes. */
static void read_rows(const struct gopclntab_lines *lines, const struct record *record,
		      struct gopclntab_function *ret)
{
	struct walk line = walk_start(lines, record->values_line, ret->start);
	struct walk file = walk_start(lines, record->values_file, ret->start);
	uint64_t at = ret->start;
	struct slice name = SLICE_LITERAL("");
	bool has_file = true;

	ret->rows_count = 0;
	if (!record->values_line || !next_value(&line))
		return;
	while (at < ret->end) {
		uint64_t next;

		while (has_file && file.address <= at) {
			has_file = record->values_file && next_value(&file);
			name = has_file ? file_at(lines, record, file.value) : SLICE_LITERAL("");
		}
		mem_grow(ret->rows, ret->rows_count, ret->rows_capacity);
		ret->rows[ret->rows_count++] =
			(struct gopclntab_row){ at, name,
						line.value > 0 ? (uint32_t)line.value : 0 };
		next = has_file && file.address < line.address ? file.address : line.address;
		at = next;
		while (line.address <= at) {
			if (!next_value(&line)) {
				if (at < ret->end)
					ret->end = at; /* the rest is padding */
				return;
			}
		}
	}
}

static const struct gopclntab_row *row_at(const struct gopclntab_function *function,
					  uint64_t address)
{
	size_t first = bisect(0, function->rows_count, i, function->rows[i].address <= address);

	return first ? &function->rows[first - 1] : NULL;
}

/* The call whose code an address is in, or -1. */
static int32_t call_at(const struct gopclntab_function *function, uint64_t address)
{
	size_t first = bisect(0, function->spans_count, i, function->spans[i].low <= address);

	if (!first || address >= function->spans[first - 1].high)
		return -1;
	return (int32_t)function->spans[first - 1].call;
}

/*
 * runtime.inlinedCall. Up to Go 1.19: parent, kind, file, line, name, place of the call, 20 bytes;
 * since: kind, name, place of the call, line of the declaration, 16 bytes.
 */
static bool read_call(const struct gopclntab_lines *lines, const struct record *record,
		      uint32_t index, const struct gopclntab_function *function,
		      struct gopclntab_call *ret)
{
	bool is_new = lines->layout.version == GOPCLNTAB_GO_1_20;
	size_t bytes = is_new ? 16 : 20;
	const struct gopclntab_row *row;
	uint64_t place;
	const uint8_t *p;

	if (!view(lines->data, record->tree + (uint64_t)index * bytes, bytes, &p))
		return false;
	*ret = (struct gopclntab_call){
		.name = name_at(lines, section_u32(p + (is_new ? 4 : 12))),
		.start_line = is_new ? section_u32(p + 12) : 0,
		.file = SLICE_LITERAL(""),
	};
	place = function->start + section_u32(p + (is_new ? 8 : 16));
	ret->parent = place < function->end ? call_at(function, place) : -1;
	row = place < function->end ? row_at(function, place) : NULL;
	if (row) {
		ret->file = row->file;
		ret->line = row->line;
	}
	return ret->name.len > 0;
}

/* Spans first: where a call is tells what it is inlined into. */
static void read_calls(const struct gopclntab_lines *lines, const struct record *record,
		       struct gopclntab_function *ret)
{
	struct walk walk = walk_start(lines, record->inline_values, ret->start);
	uint64_t low = ret->start;
	uint32_t calls = 0;

	ret->spans_count = ret->calls_count = 0;
	if (record->inline_values == NONE || !record->inline_values || record->tree == UINT64_MAX)
		return;
	while (low < ret->end && next_value(&walk)) {
		uint64_t high = walk.address < ret->end ? walk.address : ret->end;

		if (walk.value >= 0 && walk.value < (int32_t)CALLS_MAX) {
			mem_grow(ret->spans, ret->spans_count, ret->spans_capacity);
			ret->spans[ret->spans_count++] =
				(struct gopclntab_span){ low, high, (uint32_t)walk.value };
			calls = (uint32_t)walk.value >= calls ? (uint32_t)walk.value + 1 : calls;
		}
		low = walk.address;
	}
	for (uint32_t i = 0; i < calls; i++) {
		struct gopclntab_call call;

		/* Nothing is known of a tree that is damaged: neither of the calls before. */
		if (!read_call(lines, record, i, ret, &call)) {
			ret->spans_count = ret->calls_count = 0;
			return;
		}
		mem_grow(ret->calls, ret->calls_count, ret->calls_capacity);
		ret->calls[ret->calls_count++] = call;
	}
}

int gopclntab_lines_read(const struct gopclntab_lines *lines, uint64_t index,
			 struct gopclntab_function *ret, struct err *err)
{
	uint64_t end_record, offset;
	struct record record;

	if (index >= lines->layout.functions_count ||
	    !read_entry(lines, index, &ret->start, &offset) ||
	    !read_entry(lines, index + 1, &ret->end, &end_record) || ret->end <= ret->start ||
	    !read_record(lines, offset, &record))
		return err_set(err, ERR_INVALID,
			       "read Go's function table: function %" PRIu64 " is damaged", index);
	ret->name = name_at(lines, record.name);
	ret->start_line = record.start_line;
	read_rows(lines, &record, ret);
	ret->file = ret->rows_count ? ret->rows[0].file : SLICE_LITERAL("");
	read_calls(lines, &record, ret);
	return 0;
}
