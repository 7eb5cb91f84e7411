/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/symbol_builder.h"

#include "base/hash.h"
#include "base/mem.h"

#define TEXT_BYTES_MAX ((size_t)64 * 1024)
#define OFFSETS_END ((size_t)UINT32_MAX) /* ids and offsets are 32 bits */

void symbol_builder_init(struct symbol_builder *builder, size_t budget_bytes)
{
	*builder = (struct symbol_builder){ .budget_bytes = budget_bytes };
	builder->table = mem_new(struct symbol_table);
	symbol_builder_text(builder, SLICE_LITERAL(""));
}

void symbol_builder_free(struct symbol_builder *builder)
{
	symbol_table_free(builder->table);
	strbuf_free(&builder->strings);
	strbuf_free(&builder->line_bytes);
	strbuf_free(&builder->sequence.rows);
	idmap_free(&builder->string_map);
	free(builder->code.items);
	free(builder->ranges.items);
	free(builder->line_blocks.items);
	free(builder->candidates);
	*builder = (struct symbol_builder){ 0 };
}

/* Takes bytes out of the budget. */
static bool afford(struct symbol_builder *builder, size_t bytes)
{
	if (builder->over_budget || bytes > builder->budget_bytes) {
		builder->over_budget = true;
		return false;
	}
	builder->budget_bytes -= bytes;
	return true;
}

static void add_range(struct symbol_builder *builder, struct symbol_range_list *list, uint64_t low,
		      uint64_t high, uint32_t value)
{
	if (!afford(builder, sizeof(*list->items)))
		return;
	mem_grow(list->items, list->count, list->capacity);
	list->items[list->count++] = (struct symbol_range){ low, high, value };
}

/* By start; of those that start together the longest first, then the one added first. */
static int compare_ranges(const void *a, const void *b)
{
	const struct symbol_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

static void sort_ranges(struct symbol_range_list *list)
{
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), compare_ranges);
}

void symbol_builder_code(struct symbol_builder *builder, uint64_t low, uint64_t high)
{
	if (low < high)
		add_range(builder, &builder->code, low, high, 0);
}

void symbol_builder_code_done(struct symbol_builder *builder)
{
	struct symbol_range_list *code = &builder->code;
	size_t kept = 0;

	sort_ranges(code);
	for (size_t i = 0; i < code->count; i++) {
		if (kept && code->items[i].low <= code->items[kept - 1].high) {
			if (code->items[kept - 1].high < code->items[i].high)
				code->items[kept - 1].high = code->items[i].high;
		} else {
			code->items[kept++] = code->items[i];
		}
	}
	code->count = kept;
}

/* The end of the piece of code that holds the address, or 0. */
static uint64_t code_end(const struct symbol_builder *builder, uint64_t address)
{
	size_t first = 0, end = builder->code.count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (builder->code.items[middle].low <= address)
			first = middle + 1;
		else
			end = middle;
	}
	if (!first || address >= builder->code.items[first - 1].high)
		return 0;
	return builder->code.items[first - 1].high;
}

static bool text_equal(const void *context, uint32_t id, const void *key)
{
	const struct symbol_builder *builder = context;
	const struct slice *text = key;

	return id + text->len < builder->strings.len && !builder->strings.data[id + text->len] &&
	       !memcmp(builder->strings.data + id, text->data, text->len);
}

uint32_t symbol_builder_text(struct symbol_builder *builder, struct slice text)
{
	uint64_t hash;
	uint32_t id;

	text.len = strnlen(text.data, text.len < TEXT_BYTES_MAX ? text.len : TEXT_BYTES_MAX);
	hash = hash_bytes(text.data, text.len);
	id = idmap_find(&builder->string_map, hash, text_equal, builder, &text);
	if (id != IDMAP_NONE)
		return id;
	if (builder->strings.len + text.len + 1 >= OFFSETS_END)
		builder->over_budget = true;
	if (!afford(builder, text.len + 1 + sizeof(uint64_t)))
		return 0;
	id = (uint32_t)builder->strings.len;
	strbuf_add(&builder->strings, text.data, text.len);
	strbuf_add_byte(&builder->strings, 0);
	idmap_add(&builder->string_map, hash, id);
	return id;
}

uint32_t symbol_builder_function(struct symbol_builder *builder,
				 const struct symbol_function *function)
{
	struct symbol_table *table = builder->table;

	if (!afford(builder, sizeof(*function)))
		return SYMBOL_NONE;
	mem_grow(table->functions, table->functions_count, builder->functions_capacity);
	table->functions[table->functions_count] = *function;
	return (uint32_t)table->functions_count++;
}

uint32_t symbol_builder_scope(struct symbol_builder *builder, const struct symbol_scope *scope)
{
	struct symbol_table *table = builder->table;

	if (!afford(builder, sizeof(*scope)))
		return SYMBOL_NONE;
	mem_grow(table->scopes, table->scopes_count, builder->scopes_capacity);
	table->scopes[table->scopes_count] = *scope;
	return (uint32_t)table->scopes_count++;
}

void symbol_builder_range(struct symbol_builder *builder, uint64_t low, uint64_t high,
			  uint32_t scope)
{
	uint64_t end = code_end(builder, low);

	if (high > end)
		high = end;
	if (low < high)
		add_range(builder, &builder->ranges, low, high, scope);
}

void symbol_builder_symbol(struct symbol_builder *builder, const struct symbol_candidate *symbol)
{
	if (symbol->address >= symbol->section_end || !afford(builder, sizeof(*symbol)))
		return;
	mem_grow(builder->candidates, builder->candidates_count, builder->candidates_capacity);
	builder->candidates[builder->candidates_count++] = *symbol;
}

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

/* The reader of this format is find_row in symbol_table.c. */
static void close_block(struct symbol_builder *builder)
{
	struct symbol_line_sequence *sequence = &builder->sequence;
	size_t offset = builder->line_bytes.len;

	if (!sequence->block_rows)
		return;
	if (offset + sequence->rows.len >= OFFSETS_END)
		builder->over_budget = true;
	if (afford(builder, sequence->rows.len)) {
		strbuf_add_varint(&builder->line_bytes, sequence->block_rows);
		strbuf_add_slice(&builder->line_bytes, strbuf_slice(&sequence->rows));
		add_range(builder, &builder->line_blocks, sequence->block_start, UINT64_MAX,
			  (uint32_t)offset);
	}
	strbuf_clear(&sequence->rows);
	sequence->block_rows = 0;
}

static void write_row(struct symbol_builder *builder, const struct symbol_line_row *row)
{
	struct symbol_line_sequence *sequence = &builder->sequence;
	struct symbol_line_row *last = &sequence->written;
	bool new_file;

	if (!sequence->block_rows) {
		sequence->block_start = row->address;
		*last = (struct symbol_line_row){ .address = row->address };
	} else if (row->file == last->file && row->line == last->line &&
		   row->column == last->column) {
		return;
	}
	new_file = row->file != last->file;
	strbuf_add_varint(&sequence->rows, (row->address - last->address) << 1 | new_file);
	if (new_file)
		strbuf_add_varint(&sequence->rows, row->file);
	strbuf_add_varint(&sequence->rows, zigzag((int64_t)row->line - (int64_t)last->line));
	strbuf_add_varint(&sequence->rows, row->column);
	*last = *row;
	sequence->block_rows++;
}

/* A row waits for the next one: of several at one address the last counts. */
static void flush_pending(struct symbol_builder *builder)
{
	struct symbol_line_sequence *sequence = &builder->sequence;

	if (!sequence->has_pending)
		return;
	if (sequence->block_rows == SYMBOL_LINE_BLOCK_ROWS)
		close_block(builder);
	write_row(builder, &sequence->pending);
	sequence->has_pending = false;
}

void symbol_builder_row(struct symbol_builder *builder, const struct symbol_line_row *row)
{
	struct symbol_line_sequence *sequence = &builder->sequence;

	if (!sequence->open) {
		sequence->open = true;
		sequence->dropped = !code_end(builder, row->address);
	}
	if (sequence->dropped)
		return;
	if (sequence->has_pending && row->address < sequence->pending.address)
		return;
	if (sequence->has_pending && row->address > sequence->pending.address)
		flush_pending(builder);
	sequence->pending = *row;
	sequence->has_pending = true;
}

void symbol_builder_end_sequence(struct symbol_builder *builder, uint64_t address)
{
	struct symbol_line_sequence *sequence = &builder->sequence;

	if (sequence->has_pending && address >= sequence->pending.address) {
		struct symbol_line_row end = { .address = address };

		if (address > sequence->pending.address)
			flush_pending(builder);
		write_row(builder, &end);
	}
	close_block(builder);
	sequence->open = sequence->has_pending = false;
}

/* An address_index that grows at its end. */
struct index_writer {
	struct address_index index;
	size_t regions_capacity, capacity;
};

static void index_push(struct index_writer *writer, uint64_t start, uint32_t value)
{
	struct address_index *index = &writer->index;
	uint32_t high = (uint32_t)(start >> 32);

	if (!index->regions_count || index->regions[index->regions_count - 1].high != high) {
		mem_grow(index->regions, index->regions_count, writer->regions_capacity);
		index->regions[index->regions_count++] =
			(struct address_region){ high, index->count };
	}
	if (index->count == writer->capacity) {
		writer->capacity = writer->capacity ? 2 * writer->capacity : 64;
		index->lows = mem_realloc(index->lows, writer->capacity, sizeof(*index->lows));
		index->values =
			mem_realloc(index->values, writer->capacity, sizeof(*index->values));
	}
	index->lows[index->count] = (uint32_t)start;
	index->values[index->count++] = value;
}

static struct address_index index_finish(struct index_writer *writer)
{
	struct address_index *index = &writer->index;

	if (index->count) {
		index->lows = mem_realloc(index->lows, index->count, sizeof(*index->lows));
		index->values = mem_realloc(index->values, index->count, sizeof(*index->values));
	}
	return *index;
}

/* Ranges nested in each other, being turned into a list of "from here on, this one". */
struct flattener {
	struct index_writer out;
	struct symbol_range *open; /* innermost last */
	size_t open_count, open_capacity;
	uint64_t last_start;
	uint32_t last_value;
	bool has_last; /* not yet written: a later one may start at the same address */
};

static void flatten_from(struct flattener *flat, uint64_t start, uint32_t value)
{
	if (flat->has_last && flat->last_start != start) {
		struct address_index *index = &flat->out.index;

		if (!index->count || index->values[index->count - 1] != flat->last_value)
			index_push(&flat->out, flat->last_start, flat->last_value);
	}
	flat->last_start = start;
	flat->last_value = value;
	flat->has_last = true;
}

static void flatten_close(struct flattener *flat, uint64_t until)
{
	while (flat->open_count && flat->open[flat->open_count - 1].high <= until) {
		uint64_t end = flat->open[--flat->open_count].high;

		flatten_from(flat, end,
			     flat->open_count ? flat->open[flat->open_count - 1].value
					      : SYMBOL_NONE);
	}
}

/* A range that reaches out of the one it starts in is cut there. */
static struct address_index flatten(struct symbol_range_list *list)
{
	struct flattener flat = { 0 };
	struct address_index index;

	sort_ranges(list);
	for (size_t i = 0; i < list->count; i++) {
		struct symbol_range range = list->items[i];

		flatten_close(&flat, range.low);
		if (flat.open_count && range.high > flat.open[flat.open_count - 1].high)
			range.high = flat.open[flat.open_count - 1].high;
		flatten_from(&flat, range.low, range.value);
		mem_grow(flat.open, flat.open_count, flat.open_capacity);
		flat.open[flat.open_count++] = range;
	}
	flatten_close(&flat, UINT64_MAX);
	flatten_from(&flat, UINT64_MAX, SYMBOL_NONE);
	index = index_finish(&flat.out);
	free(flat.open);
	return index;
}

/* By address, the best name of an address first. */
static int compare_candidates(const void *a, const void *b)
{
	const struct symbol_candidate *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* The next higher address of a symbol, or the end of the section. */
static uint64_t next_symbol(const struct symbol_builder *builder, size_t from)
{
	const struct symbol_candidate *symbol = &builder->candidates[from];

	for (size_t i = from + 1; i < builder->candidates_count; i++)
		if (builder->candidates[i].address > symbol->address)
			return builder->candidates[i].address < symbol->section_end
				       ? builder->candidates[i].address
				       : symbol->section_end;
	return symbol->section_end;
}

/*
 * One name per address. A symbol without size reaches to the next one, and is left out within
 * the code of one that has a size: there it is a label, not a function.
 */
static void choose_symbols(struct symbol_builder *builder)
{
	struct symbol_range_list chosen = { 0 }, files = { 0 };
	uint64_t sized_end = 0;

	if (builder->candidates_count)
		qsort(builder->candidates, builder->candidates_count, sizeof(*builder->candidates),
		      compare_candidates);
	for (size_t i = 0; i < builder->candidates_count; i++) {
		const struct symbol_candidate *symbol = &builder->candidates[i];
		uint64_t end = symbol->section_end;

		if (i && builder->candidates[i - 1].address == symbol->address)
			continue;
		if (symbol->size) {
			if (symbol->size < end - symbol->address)
				end = symbol->address + symbol->size;
			sized_end = end > sized_end ? end : sized_end;
		} else if (symbol->address < sized_end) {
			continue;
		} else {
			end = next_symbol(builder, i);
		}
		add_range(builder, &chosen, symbol->address, end, symbol->name);
		add_range(builder, &files, symbol->address, end, symbol->file);
	}
	builder->table->symbols = flatten(&chosen);
	builder->table->symbol_files = flatten(&files);
	free(chosen.items);
	free(files.items);
}

static struct address_index index_blocks(struct symbol_range_list *blocks)
{
	struct index_writer writer = { 0 };

	sort_ranges(blocks);
	for (size_t i = 0; i < blocks->count; i++)
		index_push(&writer, blocks->items[i].low, blocks->items[i].value);
	return index_finish(&writer);
}

struct symbol_table *symbol_builder_finish(struct symbol_builder *builder)
{
	struct symbol_table *table = builder->table;

	symbol_builder_end_sequence(builder, 0);
	table->intervals = flatten(&builder->ranges);
	choose_symbols(builder);
	table->line_blocks = index_blocks(&builder->line_blocks);
	if (builder->over_budget)
		return NULL;
	table->functions =
		mem_realloc(table->functions, table->functions_count, sizeof(*table->functions));
	table->scopes = mem_realloc(table->scopes, table->scopes_count, sizeof(*table->scopes));
	table->strings_bytes = builder->strings.len;
	table->strings = mem_realloc(builder->strings.data, builder->strings.len, 1);
	table->line_bytes_count = builder->line_bytes.len;
	table->line_bytes = mem_realloc(builder->line_bytes.data, builder->line_bytes.len, 1);
	builder->strings = builder->line_bytes = (struct strbuf){ 0 };
	builder->table = NULL;
	return table;
}
