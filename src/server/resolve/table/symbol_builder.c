/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/table/symbol_builder.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/order/bisect.h"

#define OFFSETS_END ((size_t)UINT32_MAX) /* text ids are 32 bits */

void symbol_builder_init(struct symbol_builder *builder, size_t budget_bytes, int spill_fd)
{
	*builder = (struct symbol_builder){ .budget_bytes = budget_bytes };
	spill_init(&builder->spill, spill_fd);
	symbol_builder_text(builder, SLICE_LITERAL(""));
}

void symbol_builder_free(struct symbol_builder *builder)
{
	strbuf_free(&builder->strings);
	idmap_free(&builder->string_map);
	free(builder->functions);
	idmap_free(&builder->function_map);
	free(builder->calls);
	idmap_free(&builder->call_map);
	free(builder->scopes);
	address_range_list_free(&builder->code);
	address_range_list_free(&builder->ranges);
	spill_free(&builder->spill);
	free(builder->scope_pieces.items);
	free(builder->line_pieces.items);
	strbuf_free(&builder->sequence.rows);
	free(builder->candidates);
	free(builder->extents);
	free(builder->guesses);
	*builder = (struct symbol_builder){ .over_budget = true };
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

void symbol_builder_code(struct symbol_builder *builder, uint64_t low, uint64_t high)
{
	if (low < high && afford(builder, sizeof(*builder->code.items)))
		address_range_list_add(&builder->code, low, high, 0);
}

void symbol_builder_code_done(struct symbol_builder *builder)
{
	struct address_range_list *code = &builder->code;
	size_t kept = 0;

	address_range_list_sort(code);
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
	size_t first = bisect(0, builder->code.count, i, builder->code.items[i].low <= address);

	if (!first || address >= builder->code.items[first - 1].high)
		return 0;
	return builder->code.items[first - 1].high;
}

size_t symbol_asked_below(const struct symbol_asked *asked, uint64_t address)
{
	return bisect(0, asked->count, i, asked->items[i] < address);
}

bool symbol_builder_is_asked(const struct symbol_builder *builder, uint64_t low, uint64_t high)
{
	const struct symbol_asked *asked = builder->asked;
	size_t first;

	if (!asked)
		return true;
	first = symbol_asked_below(asked, low);
	return first < asked->count && asked->items[first] < high;
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

	text.len = strnlen(text.data,
			   text.len < SYMBOL_TEXT_BYTES_MAX ? text.len : SYMBOL_TEXT_BYTES_MAX);
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

static bool function_equal(const void *context, uint32_t id, const void *key)
{
	return !memcmp((const struct symbol_function *)context + id, key,
		       sizeof(struct symbol_function));
}

uint32_t symbol_builder_function(struct symbol_builder *builder,
				 const struct symbol_function *function)
{
	uint64_t hash = hash_bytes(function, sizeof(*function));
	uint32_t id = idmap_find(&builder->function_map, hash, function_equal, builder->functions,
				 function);

	if (id != IDMAP_NONE)
		return id;
	if (!afford(builder, sizeof(*function) + sizeof(uint64_t)))
		return SYMBOL_NONE;
	mem_grow(builder->functions, builder->functions_count, builder->functions_capacity);
	builder->functions[builder->functions_count] = *function;
	idmap_add(&builder->function_map, hash, (uint32_t)builder->functions_count);
	return (uint32_t)builder->functions_count++;
}

static bool call_equal(const void *context, uint32_t id, const void *key)
{
	return !memcmp((const struct symbol_call *)context + id, key, sizeof(struct symbol_call));
}

uint32_t symbol_builder_call(struct symbol_builder *builder, const struct symbol_call *call)
{
	uint64_t hash = hash_bytes(call, sizeof(*call));
	uint32_t id = idmap_find(&builder->call_map, hash, call_equal, builder->calls, call);

	if (id != IDMAP_NONE)
		return id;
	if (!afford(builder, sizeof(*call) + sizeof(uint64_t)))
		return SYMBOL_NONE;
	mem_grow(builder->calls, builder->calls_count, builder->calls_capacity);
	builder->calls[builder->calls_count] = *call;
	idmap_add(&builder->call_map, hash, (uint32_t)builder->calls_count);
	return (uint32_t)builder->calls_count++;
}

uint32_t symbol_builder_scope(struct symbol_builder *builder, const struct symbol_scope *scope)
{
	const struct symbol_call call = { scope->function, scope->call_file, scope->call_line };
	uint32_t id = symbol_builder_call(builder, &call);

	if (id == SYMBOL_NONE || builder->scopes_count >= SYMBOL_NONE - 1 ||
	    !afford(builder, sizeof(*builder->scopes)))
		return SYMBOL_NONE;
	mem_grow(builder->scopes, builder->scopes_count, builder->scopes_capacity);
	builder->scopes[builder->scopes_count] = (struct builder_scope){ scope->parent, id };
	return (uint32_t)builder->scopes_count++;
}

void symbol_builder_range(struct symbol_builder *builder, uint64_t low, uint64_t high,
			  uint32_t scope)
{
	uint64_t end = code_end(builder, low);

	if (high > end)
		high = end;
	if (low < high && scope >= builder->unit_scopes && scope < builder->scopes_count &&
	    afford(builder, sizeof(*builder->ranges.items))) {
		address_range_list_add(&builder->ranges, low, high, scope);
		builder->has_scopes = true;
	}
}

static void add_piece(struct symbol_builder *builder, struct symbol_piece_list *list,
		      const struct symbol_piece *piece)
{
	if (list->count >= RANGE_NONE - 1 || !afford(builder, sizeof(*piece))) {
		builder->over_budget = true;
		return;
	}
	mem_grow(list->items, list->count, list->capacity);
	list->items[list->count++] = *piece;
}

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

/* The function that each scope of the unit is in the code of. */
static uint32_t *unit_roots(const struct symbol_builder *builder)
{
	size_t first = builder->unit_scopes, count = builder->scopes_count - first;
	uint32_t *roots = mem_new_array(uint32_t, count);

	for (size_t i = 0; i < count; i++) {
		uint32_t parent = builder->scopes[first + i].parent;

		roots[i] = parent == SYMBOL_NONE || parent < first ? (uint32_t)(first + i)
								   : roots[parent - first];
	}
	return roots;
}

/* Leaves out the functions of which no address is asked for. */
static void drop_unasked(const struct symbol_builder *builder, const uint32_t *roots,
			 struct range_cover *cover)
{
	size_t first = builder->unit_scopes;
	bool *is_asked = mem_new_array(bool, builder->scopes_count - first);

	for (size_t i = 0; i + 1 < cover->count; i++)
		if (cover->items[i].value != RANGE_NONE &&
		    symbol_builder_is_asked(builder, cover->items[i].start,
					    cover->items[i + 1].start))
			is_asked[roots[cover->items[i].value - first] - first] = true;
	for (size_t i = 0; i + 1 < cover->count; i++)
		if (cover->items[i].value != RANGE_NONE &&
		    !is_asked[roots[cover->items[i].value - first] - first])
			cover->items[i].value = RANGE_NONE;
	free(is_asked);
}

/* One piece for each stretch of code without gaps that is of one function. */
static void add_unit_pieces(struct symbol_builder *builder, struct range_cover *cover)
{
	uint32_t *roots = unit_roots(builder);
	struct symbol_piece piece = { .root = SYMBOL_NONE }; /* none: code may be at address 0 */
	uint32_t last = 0;

	if (builder->asked)
		drop_unasked(builder, roots, cover);
	for (size_t i = 0; i + 1 < cover->count; i++) {
		const struct cover_entry *at = &cover->items[i];
		struct strbuf *out = spill_open(&builder->spill);

		if (at->value == RANGE_NONE)
			continue;
		if (piece.high != at->start ||
		    piece.root != roots[at->value - builder->unit_scopes]) {
			if (piece.high)
				add_piece(builder, &builder->scope_pieces, &piece);
			piece = (struct symbol_piece){
				.low = at->start,
				.begin = spill_len(&builder->spill),
				.root = roots[at->value - builder->unit_scopes],
			};
			last = 0;
		}
		strbuf_add_varint(out, at[1].start - at->start);
		strbuf_add_varint(out, zigzag((int64_t)at->value - (int64_t)last));
		last = at->value;
		piece.high = at[1].start;
	}
	if (piece.high)
		add_piece(builder, &builder->scope_pieces, &piece);
	free(roots);
}

void symbol_builder_unit_done(struct symbol_builder *builder)
{
	struct range_cover cover = { 0 };

	if (builder->ranges.count) {
		range_cover_make(&cover, &builder->ranges);
		add_unit_pieces(builder, &cover);
		spill_added(&builder->spill);
		range_cover_free(&cover);
		if (!builder->over_budget)
			builder->budget_bytes +=
				builder->ranges.count * sizeof(*builder->ranges.items);
		builder->ranges.count = 0;
	}
	builder->unit_scopes = builder->scopes_count;
}

void symbol_builder_symbol(struct symbol_builder *builder, const struct symbol_candidate *symbol)
{
	if (symbol->address >= symbol->section_end || !afford(builder, sizeof(*symbol)))
		return;
	mem_grow(builder->candidates, builder->candidates_count, builder->candidates_capacity);
	builder->candidates[builder->candidates_count++] = *symbol;
}

void symbol_builder_extent(struct symbol_builder *builder, const struct symbol_extent *extent)
{
	struct symbol_extent cut = *extent;
	uint64_t end = code_end(builder, extent->low);

	if (cut.high > end)
		cut.high = end;
	if (cut.low >= cut.high || !afford(builder, sizeof(cut)))
		return;
	mem_grow(builder->extents, builder->extents_count, builder->extents_capacity);
	builder->extents[builder->extents_count++] = cut;
}

void symbol_builder_guess(struct symbol_builder *builder, const struct symbol_guess *guess)
{
	if (!guess->text || !afford(builder, sizeof(*guess)))
		return;
	mem_grow(builder->guesses, builder->guesses_count, builder->guesses_capacity);
	builder->guesses[builder->guesses_count++] = *guess;
}

static bool same_place(const struct symbol_line_row *a, const struct symbol_line_row *b)
{
	return a->file == b->file && a->line == b->line;
}

/* Writes the pending row, which ends at `until`; the reader is step_line in symbol_finish.c. */
static void write_pending(struct symbol_builder *builder, uint64_t until)
{
	struct symbol_line_sequence *sequence = &builder->sequence;
	const struct symbol_line_row *row = &sequence->pending;
	struct symbol_row *last = &sequence->written;
	bool new_file;

	if (until <= row->address)
		return;
	if (!sequence->rows.len) {
		sequence->low = row->address;
		*last = (struct symbol_row){ 0 };
	}
	new_file = row->file != last->file;
	strbuf_add_varint(&sequence->rows, (until - row->address) << 1 | new_file);
	if (new_file)
		strbuf_add_varint(&sequence->rows, row->file);
	strbuf_add_varint(&sequence->rows, zigzag((int64_t)row->line - (int64_t)last->line));
	*last = (struct symbol_row){ .file = row->file, .line = row->line };
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
	if (sequence->has_pending) {
		if (row->address < sequence->pending.address)
			return;
		if (row->address > sequence->pending.address) {
			if (same_place(row, &sequence->pending))
				return;
			write_pending(builder, row->address);
		}
	}
	sequence->pending = *row;
	sequence->has_pending = true;
}

void symbol_builder_end_sequence(struct symbol_builder *builder, uint64_t address)
{
	struct symbol_line_sequence *sequence = &builder->sequence;
	struct symbol_piece piece = { .begin = spill_len(&builder->spill), .root = SYMBOL_NONE };

	if (sequence->has_pending) {
		if (address < sequence->pending.address) /* it is cut off */
			address = sequence->pending.address;
		write_pending(builder, address);
		piece.high = address;
	}
	builder->has_lines |= sequence->rows.len != 0;
	piece.low = sequence->low;
	if (sequence->rows.len && symbol_builder_is_asked(builder, piece.low, piece.high)) {
		strbuf_add_slice(spill_open(&builder->spill), strbuf_slice(&sequence->rows));
		spill_added(&builder->spill);
		add_piece(builder, &builder->line_pieces, &piece);
	}
	strbuf_clear(&sequence->rows);
	sequence->open = sequence->has_pending = false;
}

bool symbol_builder_has_all_asked(const struct symbol_builder *builder)
{
	const struct symbol_asked *asked = builder->asked;
	bool *is_there, has_all;

	if (!asked)
		return false;
	is_there = mem_new_array(bool, asked->count + 1);
	for (size_t i = 0; i < builder->scope_pieces.count; i++) {
		const struct symbol_piece *piece = &builder->scope_pieces.items[i];
		size_t end = symbol_asked_below(asked, piece->high);

		for (size_t at = symbol_asked_below(asked, piece->low); at < end; at++)
			is_there[at] = true;
	}
	has_all = !memchr(is_there, 0, asked->count);
	free(is_there);
	return has_all;
}

bool symbol_builder_has_scopes(const struct symbol_builder *builder)
{
	return builder->has_scopes;
}

bool symbol_builder_has_lines(const struct symbol_builder *builder)
{
	return builder->has_lines;
}
