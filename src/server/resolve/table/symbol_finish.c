/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second half of symbol_builder: pieces of functions and of lines, and symbols for what is in
 * neither, become one list of rows by address. It is gone through twice: to learn what is used,
 * which then gets its numbers in the order in which addresses need it, and to write it.
 */
#include "server/resolve/table/symbol_builder.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/order/bisect.h"
#include "server/resolve/display/demangle.h"
#include "server/resolve/table/symbol_choice.h"

/* Reads the next row of a piece; what differs from the one before is in piece->row. */
typedef uint64_t step_f(struct symbol_piece *piece, const uint8_t *spill);

/* Walks the pieces of one kind by address. */
struct cursor {
	const struct range_cover *cover;
	struct symbol_piece *pieces;
	const uint8_t *spill;
	step_f *step;
	size_t index;		    /* of the cover's entry that comes next */
	uint64_t next;		    /* where the next row starts; UINT64_MAX: nowhere */
	struct symbol_piece *piece; /* NULL: in a gap */
	struct symbol_row row;
};

struct finisher {
	struct symbol_builder *builder;
	const struct elf_info *info; /* of the binary */
	struct symbol_writer writer;
	const uint8_t *spill;
	struct range_cover scope_cover, line_cover, symbol_cover;
	uint32_t *symbol_scopes; /* of each candidate; SYMBOL_NONE: not needed */
	uint32_t *same;		 /* of scopes: which stands for it */
	uint32_t *numbers;	 /* of scopes, in the file */
	uint32_t *order;	 /* of scopes, by number */
	uint32_t numbered;
	uint32_t *function_numbers;
	struct symbol_place *declared; /* of functions, by number */
	uint8_t *is_file;	       /* by text, a bit each */
	/* Files that are used, by id, and their numbers in the file. */
	struct text_numbers {
		uint32_t *ids, *numbers;
		uint32_t count;
	} files;
	uint32_t last_file, last_file_number;
	bool is_writing; /* the second time */
};

#define NAME_BYTES_MAX ((size_t)1 << 20) /* of one name while it is read */
#define SCOPE_UNUSED SYMBOL_NONE
#define SCOPE_USED (SYMBOL_NONE - 1)

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

static uint32_t read_step(const uint8_t **at, uint32_t from)
{
	uint64_t zigzag = read_varint(at);

	return from + ((uint32_t)(zigzag >> 1) ^ (uint32_t) - (int64_t)(zigzag & 1));
}

static uint64_t step_scope(struct symbol_piece *piece, const uint8_t *spill)
{
	const uint8_t *at = spill + piece->at;
	uint64_t len = read_varint(&at);

	piece->row.scope = read_step(&at, piece->row.scope);
	piece->at = (uint64_t)(at - spill);
	return len;
}

static uint64_t step_line(struct symbol_piece *piece, const uint8_t *spill)
{
	const uint8_t *at = spill + piece->at;
	uint64_t len = read_varint(&at);

	if (len & 1)
		piece->row.file = (uint32_t)read_varint(&at);
	piece->row.line = read_step(&at, piece->row.line);
	piece->at = (uint64_t)(at - spill);
	return len >> 1;
}

static void rewind_pieces(struct symbol_piece_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct symbol_piece *piece = &list->items[i];

		piece->at = piece->begin;
		piece->row_end = piece->low;
		piece->row = (struct symbol_row){ 0 };
	}
}

static void cover_pieces(struct range_cover *cover, const struct symbol_piece_list *list)
{
	struct address_range_list ranges = { 0 };

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].low < list->items[i].high)
			address_range_list_add(&ranges, list->items[i].low, list->items[i].high,
					       (uint32_t)i);
	range_cover_make(cover, &ranges);
	address_range_list_free(&ranges);
}

/* Goes on to the row that starts at cursor->next. */
static void advance(struct cursor *cursor)
{
	const struct range_cover *cover = cursor->cover;
	uint64_t at = cursor->next, end;

	while (cursor->index < cover->count && cover->items[cursor->index].start <= at) {
		uint32_t value = cover->items[cursor->index++].value;

		cursor->piece = value == RANGE_NONE ? NULL : &cursor->pieces[value];
	}
	end = cursor->index < cover->count ? cover->items[cursor->index].start : UINT64_MAX;
	if (cursor->piece) {
		struct symbol_piece *piece = cursor->piece;

		while (piece->row_end <= at && piece->row_end < piece->high)
			piece->row_end += cursor->step(piece, cursor->spill);
		cursor->row = piece->row;
		if (piece->row_end > at && piece->row_end < end)
			end = piece->row_end;
	}
	cursor->next = end;
}

static struct cursor start_cursor(const struct finisher *finisher, const struct range_cover *cover,
				  struct symbol_piece_list *list, step_f *step)
{
	struct cursor cursor = {
		.cover = cover,
		.pieces = list->items,
		.spill = finisher->spill,
		.step = step,
		.next = cover->count ? cover->items[0].start : UINT64_MAX,
	};

	rewind_pieces(list);
	return cursor;
}

static struct slice text_of(const struct symbol_builder *builder, uint32_t text)
{
	return slice_of(builder->strings.data + text);
}

static bool is_mangled(struct slice name)
{
	return slice_starts_with(name, SLICE_LITERAL("_Z")) ||
	       slice_starts_with(name, SLICE_LITERAL("_R"));
}

/*
 * Gives a function the mangled name from the symbol tables when DWARF has none: local functions of
 * C++. A clone's suffix (".cold", ".part.0") is not the function's. Or its only name.
 */
static void name_by_symbol(struct finisher *finisher, uint32_t root, uint64_t address)
{
	struct symbol_builder *builder = finisher->builder;
	struct symbol_call call = builder->calls[builder->scopes[root].call];
	struct symbol_function function = builder->functions[call.function];
	uint32_t symbol, text, number;

	if (function.linkage_name)
		return;
	symbol = range_cover_find(&finisher->symbol_cover, address);
	if (symbol == RANGE_NONE || builder->candidates[symbol].is_unnamed)
		return;
	text = builder->candidates[symbol].name;
	if (is_mangled(text_of(builder, text))) {
		struct slice clone, name = slice_cut(text_of(builder, text), '.', &clone);
		char *copy = mem_strndup(name.data, name.len); /* interning moves the texts */

		function.linkage_name = symbol_builder_text(builder, slice_of(copy));
		free(copy);
	} else if (!function.name) {
		function.name = text;
	} else {
		return;
	}
	call.function = symbol_builder_function(builder, &function);
	if (call.function == SYMBOL_NONE)
		return;
	number = symbol_builder_call(builder, &call);
	if (number != SYMBOL_NONE)
		builder->scopes[root].call = number;
}

/* Two scopes of one parent and call cannot be told apart: they become one. */
static bool scope_equal(const void *context, uint32_t id, const void *key)
{
	const struct builder_scope *scope = (const struct builder_scope *)context + id;
	const struct builder_scope *wanted = key;

	return scope->parent == wanted->parent && scope->call == wanted->call;
}

/* Which scope stands for each. */
static uint32_t *merge_scopes(struct symbol_builder *builder)
{
	uint32_t *same = mem_new_array(uint32_t, builder->scopes_count + 1);
	struct idmap map = { 0 };

	for (uint32_t i = 0; i < builder->scopes_count; i++) {
		struct builder_scope *scope = &builder->scopes[i];
		uint64_t hash;

		same[i] = i;
		if (scope->parent == SYMBOL_NONE)
			continue;
		scope->parent = same[scope->parent];
		hash = hash_mix(scope->parent, scope->call);
		same[i] = idmap_find(&map, hash, scope_equal, builder->scopes, scope);
		if (same[i] != IDMAP_NONE)
			continue;
		same[i] = i;
		idmap_add(&map, hash, i);
	}
	idmap_free(&map);
	return same;
}

/* The longest piece of each function is where its scopes are numbered. */
static uint32_t *home_pieces(const struct symbol_builder *builder)
{
	const struct symbol_piece *pieces = builder->scope_pieces.items;
	uint32_t *homes = mem_new_array(uint32_t, builder->scopes_count);

	for (size_t i = 0; i < builder->scope_pieces.count; i++) {
		uint32_t *home = &homes[pieces[i].root];

		if (!*home ||
		    pieces[i].high - pieces[i].low > pieces[*home - 1].high - pieces[*home - 1].low)
			*home = (uint32_t)i + 1;
	}
	return homes;
}

static void set_bit(uint8_t *bits, uint32_t index)
{
	bits[index / 8] |= (uint8_t)(1u << index % 8);
}

/* Notes what a row needs. */
static void use_row(struct finisher *finisher, const struct symbol_row *row)
{
	struct symbol_builder *builder = finisher->builder;

	set_bit(finisher->is_file, row->file);
	for (uint32_t scope = row->scope;
	     scope != SYMBOL_NONE && finisher->numbers[scope] == SCOPE_UNUSED;
	     scope = builder->scopes[scope].parent)
		finisher->numbers[scope] = SCOPE_USED;
}

static uint32_t text_number(const struct text_numbers *texts, uint32_t id)
{
	uint32_t first = bisect(0, texts->count, i, texts->ids[i] < id);

	return first < texts->count && texts->ids[first] == id ? texts->numbers[first] : 0;
}

static uint32_t file_number(struct finisher *finisher, uint32_t file)
{
	if (!file)
		return 0;
	if (finisher->last_file != file) {
		finisher->last_file = file;
		finisher->last_file_number = text_number(&finisher->files, file);
	}
	return finisher->last_file_number;
}

static uint32_t function_number(const struct finisher *finisher, uint32_t scope)
{
	const struct symbol_builder *builder = finisher->builder;

	return finisher->function_numbers[builder->calls[builder->scopes[scope].call].function];
}

static void write_row(struct finisher *finisher, struct symbol_row row)
{
	struct symbol_place declared = { 0 };

	if (row.scope != SYMBOL_NONE) {
		declared = finisher->declared[function_number(finisher, row.scope)];
		row.scope = finisher->numbers[row.scope];
	}
	row.file = file_number(finisher, row.file);
	symbol_writer_row(&finisher->writer, &row, &declared);
}

static bool rows_differ(const struct symbol_row *a, const struct symbol_row *b)
{
	return a->scope != b->scope || a->file != b->file || a->line != b->line;
}

/* The scope of the symbol at a place where no DWARF is; made the first time. */
static uint32_t symbol_scope(struct finisher *finisher, uint32_t symbol)
{
	struct symbol_builder *builder = finisher->builder;
	const struct symbol_candidate *candidate = &builder->candidates[symbol];
	struct symbol_function function = { .name = candidate->name,
					    .linkage_name = candidate->linkage_name,
					    .file = candidate->file,
					    .is_unnamed = candidate->is_unnamed };
	struct symbol_scope scope = { .parent = SYMBOL_NONE };

	if (finisher->symbol_scopes[symbol] == SYMBOL_NONE && !finisher->is_writing) {
		scope.function = symbol_builder_function(builder, &function);
		if (scope.function != SYMBOL_NONE)
			finisher->symbol_scopes[symbol] = symbol_builder_scope(builder, &scope);
	}
	return finisher->symbol_scopes[symbol];
}

/* Goes through all rows by address. */
static void sweep(struct finisher *finisher)
{
	struct symbol_builder *builder = finisher->builder;
	struct cursor scopes =
		start_cursor(finisher, &finisher->scope_cover, &builder->scope_pieces, step_scope);
	struct cursor lines =
		start_cursor(finisher, &finisher->line_cover, &builder->line_pieces, step_line);
	const struct range_cover *symbols = &finisher->symbol_cover;
	struct symbol_row last = { .scope = SYMBOL_NONE };
	uint32_t symbol = RANGE_NONE;
	bool has_rows = false;
	uint64_t end;

	for (size_t i = 0;;) {
		uint64_t next = i < symbols->count ? symbols->items[i].start : UINT64_MAX;
		struct symbol_row row = { .scope = SYMBOL_NONE };

		row.address = scopes.next < lines.next ? scopes.next : lines.next;
		row.address = next < row.address ? next : row.address;
		if (row.address == UINT64_MAX)
			break;
		if (scopes.next == row.address)
			advance(&scopes);
		if (lines.next == row.address)
			advance(&lines);
		if (next == row.address)
			symbol = symbols->items[i++].value;
		end = i < symbols->count ? symbols->items[i].start : UINT64_MAX;
		end = scopes.next < end ? scopes.next : end;
		end = lines.next < end ? lines.next : end;
		if (!symbol_builder_is_asked(builder, row.address, end))
			continue;
		if (lines.piece) {
			row.file = lines.row.file;
			row.line = lines.row.line;
		}
		if (scopes.piece)
			row.scope = finisher->same[scopes.row.scope];
		else if (symbol != RANGE_NONE)
			row.scope = symbol_scope(finisher, symbol);
		if (row.scope == SYMBOL_NONE && !row.line)
			row.file = 0;
		if (!rows_differ(&row, &last))
			continue;
		if (!has_rows && row.scope == SYMBOL_NONE && !row.line)
			continue;
		has_rows = true;
		last = row;
		if (finisher->is_writing)
			write_row(finisher, row);
		else
			use_row(finisher, &row);
	}
}

static void number_scope(struct finisher *finisher, uint32_t scope)
{
	const struct builder_scope *scopes = finisher->builder->scopes;

	while (finisher->numbers[scope] == SCOPE_USED) {
		uint32_t top = scope;

		while (scopes[top].parent != SYMBOL_NONE &&
		       finisher->numbers[scopes[top].parent] == SCOPE_USED)
			top = scopes[top].parent;
		finisher->order[finisher->numbered] = top;
		finisher->numbers[top] = finisher->numbered++;
	}
}

/* The scopes of pieces that are at home, or of the others. */
static void number_pieces(struct finisher *finisher, const uint32_t *homes, bool at_home)
{
	struct symbol_piece_list *list = &finisher->builder->scope_pieces;

	rewind_pieces(list);
	for (size_t i = 0; i < finisher->scope_cover.count; i++) {
		uint32_t index = finisher->scope_cover.items[i].value;
		struct symbol_piece *piece;

		if (index == RANGE_NONE)
			continue;
		piece = &list->items[index];
		if (at_home != (homes[piece->root] == index + 1))
			continue;
		while (piece->row_end < piece->high) {
			piece->row_end += step_scope(piece, finisher->spill);
			number_scope(finisher, finisher->same[piece->row.scope]);
		}
	}
}

/*
 * In the order of addresses, so that what is used together is near; a function whose unlikely
 * parts are elsewhere stays together.
 */
static void number_scopes(struct finisher *finisher, const uint32_t *homes)
{
	const struct symbol_builder *builder = finisher->builder;

	finisher->order = mem_new_array(uint32_t, builder->scopes_count + 1);
	number_pieces(finisher, homes, true);
	number_pieces(finisher, homes, false);
	for (size_t i = 0; i < builder->candidates_count; i++)
		if (finisher->symbol_scopes[i] != SYMBOL_NONE)
			number_scope(finisher, finisher->symbol_scopes[i]);
}

static uint32_t *new_numbers(size_t count)
{
	uint32_t *numbers = mem_new_array(uint32_t, count + 1);

	memset(numbers, 0xff, (count + 1) * sizeof(*numbers));
	return numbers;
}

/* The functions that scopes need, in any order, and their files; the files of calls, too. */
static uint32_t *used_functions(struct finisher *finisher, uint32_t *ret_count)
{
	const struct symbol_builder *builder = finisher->builder;
	uint32_t *order = mem_new_array(uint32_t, builder->functions_count + 1), count = 0;

	finisher->function_numbers = new_numbers(builder->functions_count);
	for (uint32_t i = 0; i < finisher->numbered; i++) {
		const struct symbol_call *call =
			&builder->calls[builder->scopes[finisher->order[i]].call];

		set_bit(finisher->is_file, call->file);
		if (finisher->function_numbers[call->function] != SYMBOL_NONE)
			continue;
		finisher->function_numbers[call->function] = 0;
		order[count++] = call->function;
		set_bit(finisher->is_file, builder->functions[call->function].file);
	}
	*ret_count = count;
	return order;
}

static int compare_texts(const void *a, const void *b, void *context)
{
	const char *strings = context;

	return strcmp(strings + *(const uint32_t *)a, strings + *(const uint32_t *)b);
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Gives the files numbers by their order, and writes them. */
static void number_files(struct finisher *finisher)
{
	struct strbuf *strings = &finisher->builder->strings;
	struct text_numbers *files = &finisher->files;
	const uint8_t *marks = finisher->is_file;
	uint32_t *sorted, count = 0;

	for (size_t i = 1; i < strings->len; i++)
		count += marks[i / 8] >> i % 8 & 1;
	*files = (struct text_numbers){ .ids = mem_new_array(uint32_t, count + 1),
					.numbers = mem_new_array(uint32_t, count + 1) };
	for (size_t i = 1; i < strings->len; i++)
		if (marks[i / 8] >> i % 8 & 1)
			files->ids[files->count++] = (uint32_t)i;
	sorted = mem_new_array(uint32_t, count + 1);
	memcpy(sorted, files->ids, count * sizeof(*sorted));
	qsort_r(sorted, count, sizeof(*sorted), compare_texts, strings->data);
	symbol_writer_text(&finisher->writer, SLICE_LITERAL(""));
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t *at =
			bsearch(&sorted[i], files->ids, count, sizeof(*sorted), compare_ids);

		files->numbers[at - files->ids] = 1 + i;
		symbol_writer_text(&finisher->writer, slice_of(strings->data + sorted[i]));
	}
	free(sorted);
}

/* What functions are sorted by. */
struct sorted_function {
	struct symbol_place declared;
	const char *name;
	uint32_t id;
	uint32_t is_unnamed;
};

/*
 * What is alike is near: instances of a template, functions of a file. Those without names come
 * last: that is how they are told.
 */
static int compare_functions(const void *a, const void *b)
{
	const struct sorted_function *x = a, *y = b;
	int order;

	if (x->is_unnamed != y->is_unnamed)
		return x->is_unnamed ? 1 : -1;
	if (x->declared.file != y->declared.file)
		return x->declared.file < y->declared.file ? -1 : 1;
	if (x->declared.line != y->declared.line)
		return x->declared.line < y->declared.line ? -1 : 1;
	order = strcmp(x->name, y->name);
	return order ? order : (x->id > y->id) - (x->id < y->id);
}

/* The source's name, where it is not told by the mangled one. */
static struct slice plain_name(const struct finisher *finisher,
			       const struct symbol_function *function, struct arena *arena)
{
	struct slice name = text_of(finisher->builder, function->name), shown;
	bool is_told = function->linkage_name &&
		       demangle(text_of(finisher->builder, function->linkage_name), arena, &shown);

	arena_free(arena);
	return is_told ? SLICE_LITERAL("") : name;
}

static void write_functions(struct finisher *finisher, const uint32_t *used, uint32_t count)
{
	struct symbol_builder *builder = finisher->builder;
	struct sorted_function *sorted = mem_new_array(struct sorted_function, count + 1);
	struct arena arena;

	arena_init(&arena, NAME_BYTES_MAX);
	finisher->declared = mem_new_array(struct symbol_place, count + 1);
	for (uint32_t i = 0; i < count; i++) {
		const struct symbol_function *function = &builder->functions[used[i]];

		sorted[i] = (struct sorted_function){
			{ file_number(finisher, function->file), function->line },
			builder->strings.data +
				(function->linkage_name ? function->linkage_name : function->name),
			used[i],
			function->is_unnamed,
		};
		finisher->writer.unnamed_count += function->is_unnamed;
	}
	qsort(sorted, count, sizeof(*sorted), compare_functions);
	for (uint32_t i = 0; i < count; i++) {
		const struct symbol_function *function = &builder->functions[sorted[i].id];

		finisher->function_numbers[sorted[i].id] = i;
		finisher->declared[i] = sorted[i].declared;
		symbol_writer_function(&finisher->writer, &sorted[i].declared);
		symbol_writer_text(&finisher->writer, plain_name(finisher, function, &arena));
		symbol_writer_text(&finisher->writer, text_of(builder, function->linkage_name));
	}
	free(sorted);
}

static void write_scopes(struct finisher *finisher)
{
	const struct symbol_builder *builder = finisher->builder;
	const struct symbol_place nowhere = { 0 };

	for (uint32_t i = 0; i < finisher->numbered; i++) {
		uint32_t id = finisher->order[i], parent = builder->scopes[id].parent;
		const struct symbol_call *call = &builder->calls[builder->scopes[id].call];
		uint32_t function = function_number(finisher, id);
		struct symbol_place place = { file_number(finisher, call->file), call->line };

		if (parent == SYMBOL_NONE)
			symbol_writer_scope(&finisher->writer, 0, function, &nowhere, &nowhere);
		else
			symbol_writer_scope(&finisher->writer, i - finisher->numbers[parent],
					    function, &place,
					    &finisher->declared[function_number(finisher, parent)]);
	}
}

/* Bytes of the texts of these functions, and of all files. */
static uint64_t texts_bytes(const struct symbol_builder *builder, const uint32_t *functions,
			    uint32_t count)
{
	uint64_t bytes = builder->strings.len;

	for (uint32_t i = 0; i < count; i++) {
		const struct symbol_function *function = &builder->functions[functions[i]];

		bytes += text_of(builder, function->name).len +
			 text_of(builder, function->linkage_name).len + FUNCTION_TEXTS;
	}
	return bytes;
}

/* Everything but rows: numbers it, and writes it. */
static void write_records(struct finisher *finisher)
{
	uint32_t count;
	uint32_t *functions = used_functions(finisher, &count);

	symbol_writer_begin_texts(&finisher->writer, finisher->builder->is_for_once, count,
				  texts_bytes(finisher->builder, functions, count));
	number_files(finisher);
	write_functions(finisher, functions, count);
	write_scopes(finisher);
	free(functions);
}

static void run(struct finisher *finisher)
{
	struct symbol_builder *builder = finisher->builder;
	size_t marks_bytes;
	uint32_t *homes;

	cover_pieces(&finisher->scope_cover, &builder->scope_pieces);
	cover_pieces(&finisher->line_cover, &builder->line_pieces);
	symbol_choice_make(builder, finisher->info, &finisher->symbol_cover);
	homes = home_pieces(builder);
	for (size_t i = 0; i < builder->scope_pieces.count; i++)
		if (homes[builder->scope_pieces.items[i].root] == i + 1)
			name_by_symbol(finisher, builder->scope_pieces.items[i].root,
				       builder->scope_pieces.items[i].low);
	marks_bytes = builder->strings.len / 8 + 1;
	finisher->is_file = mem_new_array(uint8_t, marks_bytes);
	finisher->symbol_scopes = new_numbers(builder->candidates_count);
	finisher->numbers = new_numbers(builder->scopes_count + builder->candidates_count);
	finisher->same = merge_scopes(builder);
	sweep(finisher);
	number_scopes(finisher, homes);
	free(homes);
	write_records(finisher);
	finisher->is_writing = true;
	sweep(finisher);
}

static void free_finisher(struct finisher *finisher)
{
	symbol_writer_free(&finisher->writer);
	range_cover_free(&finisher->scope_cover);
	range_cover_free(&finisher->line_cover);
	range_cover_free(&finisher->symbol_cover);
	free(finisher->symbol_scopes);
	free(finisher->same);
	free(finisher->numbers);
	free(finisher->order);
	free(finisher->function_numbers);
	free(finisher->declared);
	free(finisher->is_file);
	free(finisher->files.ids);
	free(finisher->files.numbers);
}

int symbol_builder_finish(struct symbol_builder *builder, const struct symbol_table *about, int fd,
			  struct err *err)
{
	struct finisher finisher = { .builder = builder, .info = &about->info };
	int status;

	symbol_builder_end_sequence(builder, 0);
	symbol_builder_unit_done(builder);
	status = spill_finish(&builder->spill, &finisher.spill, err);
	if (status)
		return status;
	symbol_writer_init(&finisher.writer, fd);
	if (!builder->over_budget)
		run(&finisher);
	if (builder->over_budget)
		status = err_set(err, ERR_LIMIT, "over the memory budget");
	else
		status = symbol_writer_finish(&finisher.writer, about, finisher.files.count + 1,
					      err);
	free_finisher(&finisher);
	return status;
}
