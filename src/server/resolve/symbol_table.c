/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/symbol_table.h"

#include <stdlib.h>

/* A position in the line table. */
struct line_row {
	uint64_t address;
	uint32_t file, line, column;
};

static void address_index_free(struct address_index *index)
{
	free(index->regions);
	free(index->lows);
	free(index->values);
}

static size_t address_index_bytes(const struct address_index *index)
{
	return index->regions_count * sizeof(*index->regions) +
	       (size_t)index->count * (sizeof(*index->lows) + sizeof(*index->values));
}

void symbol_table_free(struct symbol_table *table)
{
	if (!table)
		return;
	free(table->strings);
	free(table->functions);
	free(table->scopes);
	free(table->line_bytes);
	address_index_free(&table->intervals);
	address_index_free(&table->line_blocks);
	address_index_free(&table->symbols);
	address_index_free(&table->symbol_files);
	free(table);
}

size_t symbol_table_bytes(const struct symbol_table *table)
{
	return sizeof(*table) + table->strings_bytes + table->line_bytes_count +
	       table->functions_count * sizeof(*table->functions) +
	       table->scopes_count * sizeof(*table->scopes) +
	       address_index_bytes(&table->intervals) + address_index_bytes(&table->line_blocks) +
	       address_index_bytes(&table->symbols) + address_index_bytes(&table->symbol_files);
}

/* The last region at or below `high`, or SYMBOL_NONE. */
static uint32_t find_region(const struct address_index *index, uint32_t high)
{
	uint32_t first = 0, end = index->regions_count;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (index->regions[middle].high <= high)
			first = middle + 1;
		else
			end = middle;
	}
	return first ? first - 1 : SYMBOL_NONE;
}

/* The value of the last entry at or below the address, or SYMBOL_NONE. */
static uint32_t find_value(const struct address_index *index, uint64_t address, uint64_t *ret_start)
{
	uint32_t region = find_region(index, (uint32_t)(address >> 32));
	uint32_t first, end;

	if (region == SYMBOL_NONE)
		return SYMBOL_NONE;
	first = index->regions[region].first;
	end = region + 1 < index->regions_count ? index->regions[region + 1].first : index->count;
	while (first < end && index->regions[region].high == address >> 32) {
		uint32_t middle = first + (end - first) / 2;

		if (index->lows[middle] <= (uint32_t)address)
			first = middle + 1;
		else
			end = middle;
	}
	if (!end)
		return SYMBOL_NONE;
	if (end == index->regions[region].first) /* below the region's first entry */
		region--;
	*ret_start = (uint64_t)index->regions[region].high << 32 | index->lows[end - 1];
	return index->values[end - 1];
}

static uint32_t value_at(const struct address_index *index, uint64_t address)
{
	uint64_t start;

	return find_value(index, address, &start);
}

static struct slice text_of(const struct symbol_table *table, uint32_t text)
{
	return slice_of(table->strings + text);
}

static uint64_t read_varint(const uint8_t **at)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
}

/*
 * A block is: count of rows; then per row (address delta << 1 | file changed), the file if it
 * changed, the zigzag line delta, the column. The deltas of a block's first row are against its
 * start address and line 0. A row without file and line ends a sequence.
 */
static struct line_row find_row(const struct symbol_table *table, uint64_t address)
{
	struct line_row row = { 0 }, found = { 0 };
	uint32_t block = find_value(&table->line_blocks, address, &row.address);
	const uint8_t *at;
	uint64_t rows;

	if (block == SYMBOL_NONE)
		return found;
	at = table->line_bytes + block;
	for (rows = read_varint(&at); rows; rows--) {
		uint64_t step = read_varint(&at);
		uint64_t zigzag;

		row.address += step >> 1;
		if (row.address > address)
			break;
		if (step & 1)
			row.file = (uint32_t)read_varint(&at);
		zigzag = read_varint(&at);
		row.line += (uint32_t)(zigzag >> 1) ^ (uint32_t) - (int64_t)(zigzag & 1);
		row.column = (uint32_t)read_varint(&at);
		found = row;
	}
	return found;
}

static bool is_mangled(struct slice name)
{
	return slice_starts_with(name, SLICE_LITERAL("_Z")) ||
	       slice_starts_with(name, SLICE_LITERAL("_R"));
}

/*
 * The mangled name from the symbol tables, for a function to which DWARF gives none: local
 * functions of C++. A clone's suffix (".cold", ".part.0") is not the function's.
 */
static struct slice symbol_if_mangled(const struct symbol_table *table, uint64_t address)
{
	uint32_t text = value_at(&table->symbols, address);
	struct slice name, clone;

	if (text == SYMBOL_NONE || !is_mangled(text_of(table, text)))
		return (struct slice){ "", 0 };
	name = slice_cut(text_of(table, text), '.', &clone);
	return name;
}

static size_t lookup_symbol(const struct symbol_table *table, uint64_t address,
			    const struct line_row *row, struct symbol_line *ret)
{
	uint32_t text = value_at(&table->symbols, address);
	uint32_t file = row->file ? row->file : value_at(&table->symbol_files, address);

	if (text == SYMBOL_NONE && !row->line)
		return 0;
	*ret = (struct symbol_line){ .name = text_of(table, text == SYMBOL_NONE ? 0 : text),
				     .linkage_name = { "", 0 },
				     .file = text_of(table, file == SYMBOL_NONE ? 0 : file),
				     .line = row->line,
				     .column = row->column };
	return 1;
}

size_t symbol_table_lookup(const struct symbol_table *table, uint64_t address,
			   struct symbol_line ret_lines[SYMBOL_CHAIN_MAX])
{
	uint32_t scope = value_at(&table->intervals, address);
	struct line_row place = find_row(table, address);
	size_t count = 0;

	if (scope == SYMBOL_NONE)
		return lookup_symbol(table, address, &place, ret_lines);
	for (; scope != SYMBOL_NONE && count < SYMBOL_CHAIN_MAX; count++) {
		const struct symbol_scope *at = &table->scopes[scope];
		const struct symbol_function *function = &table->functions[at->function];

		ret_lines[count] = (struct symbol_line){
			.name = text_of(table, function->name),
			.linkage_name = text_of(table, function->linkage_name),
			.file = text_of(table, place.file ? place.file : function->file),
			.line = place.line,
			.column = place.column,
			.start_line = function->line,
		};
		place = (struct line_row){ .file = at->call_file,
					   .line = at->call_line,
					   .column = at->call_column };
		scope = at->parent;
	}
	if (!ret_lines[count - 1].linkage_name.len)
		ret_lines[count - 1].linkage_name = symbol_if_mangled(table, address);
	if (!ret_lines[count - 1].name.len && !ret_lines[count - 1].linkage_name.len) {
		uint32_t text = value_at(&table->symbols, address);

		if (text != SYMBOL_NONE)
			ret_lines[count - 1].name = text_of(table, text);
	}
	return count;
}
