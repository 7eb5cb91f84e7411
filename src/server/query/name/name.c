/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query meets millions of nodes, some hundred thousand frames, and some ten thousand functions.
 * Each layer is therefore looked up once and remembered by the cheapest key that it has:
 *
 *   frame -> chain       an array by frame id of the view
 *   symbol -> function   by the numbers of its texts in the symbol table: no hash of a name
 *   function -> number   by what makes it one for the reader (function_key)
 *
 * Invariant: a chain that has lines never changes, and function 0 is the root. Names are demangled
 * when a symbol is met for the first time, so the costly step is done once per function of a
 * binary. Texts are unpacked for that step alone: what is unpacked of all binaries together is
 * bounded, and goes when others are needed.
 */
#include "server/query/name/name.h"

#include <assert.h>

#include "base/clock.h"
#include "base/hash.h"
#include "server/query/name/function_name.h"

#define NAMES_PER_RESET 256u		  /* of the scratch memory */
#define ID_SHOWN 12u			  /* digits of a build id that stands for a path */
#define TEXTS_BYTES_MAX ((size_t)8 << 20) /* unpacked of all binaries */
#define LOOK_NS (50 * CLOCK_NS_PER_MS)	  /* whether a query that waits for symbols is to end */

/* What makes two functions the same; the rest of the fields only describe. */
struct function_key {
	struct slice name, binary, file, build_id;
	uint64_t address;
	enum frame_kind kind;
	bool is_label;
};

struct slice name_binary_of(struct slice mapping)
{
	for (size_t i = mapping.len; i > 0; i--)
		if (mapping.data[i - 1] == '/')
			return slice_tail(mapping, i);
	return mapping;
}

/* "0x4a3f". There may be millions of them. */
static void add_hex(struct strbuf *out, uint64_t number)
{
	char digits[2 + 16];
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789abcdef"[number & 15];
		number >>= 4;
	} while (number);
	digits[--at] = 'x';
	digits[--at] = '0';
	strbuf_add_slice(out, slice_from(digits + at, sizeof(digits) - at));
}

bool name_has_address(struct slice mapping, uint64_t address)
{
	struct slice binary = name_binary_of(mapping);

	return binary.len ? !slice_is(binary, "[anon]") : address != 0;
}

void name_address(struct strbuf *out, struct slice mapping, uint64_t address)
{
	struct slice binary = name_binary_of(mapping);
	bool bracketed = binary.len && binary.data[0] == '[';

	if (!name_has_address(mapping, address)) {
		strbuf_add_text(out, binary.len ? "[anon]" : "[unknown]");
		return;
	}
	add_hex(out, address);
	if (!binary.len)
		return;
	strbuf_add_text(out, bracketed ? " " : " [");
	strbuf_add_slice(out, binary);
	if (!bracketed)
		strbuf_add_byte(out, ']');
}

int name_order(const struct tree_function *functions, uint32_t a_id, uint32_t b_id)
{
	const struct tree_function *a = &functions[a_id], *b = &functions[b_id];
	int order = slice_compare(a->name, b->name);

	if (!order)
		order = slice_compare(a->mapping, b->mapping);
	if (!order)
		order = slice_compare(a->file, b->file);
	return order ? order : (a_id > b_id) - (a_id < b_id);
}

/* Kinds whose functions live in source files rather than in binaries. */
static bool is_interpreted(enum frame_kind kind)
{
	switch (kind) {
	case FRAME_UNKNOWN:
	case FRAME_NATIVE:
	case FRAME_KERNEL:
	case FRAME_GO:
	case FRAME_RUST:
	case FRAME_MARKER:
	case FRAME_PYTHON_RUNTIME:
	case FRAME_V8_RUNTIME:
	case FRAME_RUBY_RUNTIME:
	case FRAME_DOTNET_RUNTIME:
	case FRAME_PHP_RUNTIME:
	case FRAME_BEAM_RUNTIME:
	case FRAME_PERL_RUNTIME:
	case FRAME_LUA_RUNTIME:
		return false;
	default:
		return true;
	}
}

static struct function_key key_of(unsigned apart, const struct tree_function *function,
				  bool unnamed)
{
	struct function_key key = {
		.name = function->name,
		.binary = apart & NAME_APART_MAPPING ? function->mapping
						     : name_binary_of(function->mapping),
		.address = function->address,
		.kind = function->kind,
		.is_label = function->is_label,
	};

	if (unnamed)
		key.build_id = function->build_id;
	else if (!key.binary.len || apart & NAME_APART_FILE || is_interpreted(function->kind))
		key.file = function->file;
	return key;
}

struct sought_function {
	struct function_key key;
	bool unnamed;
};

static bool function_equal(const void *context, uint32_t id, const void *wanted)
{
	const struct name_table *table = context;
	const struct sought_function *sought = wanted;
	const struct function_key *a = &sought->key;
	struct function_key b = key_of(table->apart, &table->functions[id], sought->unnamed);

	return a->kind == b.kind && a->is_label == b.is_label && a->address == b.address &&
	       slice_equal(a->name, b.name) && slice_equal(a->binary, b.binary) &&
	       slice_equal(a->file, b.file) && slice_equal(a->build_id, b.build_id);
}

static uint64_t key_hash(const struct function_key *key)
{
	uint64_t hash = hash_mix(hash_mix(key->kind, key->is_label), key->address);

	hash = hash_mix(hash, hash_bytes(key->name.data, key->name.len));
	hash = hash_mix(hash, hash_bytes(key->binary.data, key->binary.len));
	hash = hash_mix(hash, hash_bytes(key->file.data, key->file.len));
	return hash_mix(hash, hash_bytes(key->build_id.data, key->build_id.len));
}

static void fill_in(struct arena *strings, struct slice *into, struct slice from)
{
	if (!into->len && from.len)
		*into = arena_copy(strings, from);
}

/* Keeps what is known and adds what was not. */
static void describe(struct name_table *table, struct tree_function *known,
		     const struct tree_function *seen)
{
	fill_in(table->strings, &known->system_name, seen->system_name);
	fill_in(table->strings, &known->mapping, seen->mapping);
	fill_in(table->strings, &known->build_id, seen->build_id);
	if (!known->file.len) {
		fill_in(table->strings, &known->file, seen->file);
		known->start_line = seen->start_line;
	}
	if (!known->start_line && slice_equal(known->file, seen->file))
		known->start_line = seen->start_line;
}

static uint32_t intern(struct name_table *table, const struct tree_function *seen, bool unnamed)
{
	struct sought_function sought = { key_of(table->apart, seen, unnamed), unnamed };
	uint64_t hash = key_hash(&sought.key);
	uint32_t id = idmap_find(&table->map, hash, function_equal, table, &sought);

	if (id == IDMAP_NONE) {
		struct tree_function made = { .kind = seen->kind,
					      .is_label = seen->is_label,
					      .is_address = seen->is_address,
					      .unresolved = seen->unresolved,
					      .address = seen->address };

		if (!WORK_REGROW(&table->work->arena, table->functions, table->functions_count,
				 table->functions_capacity))
			return IDMAP_NONE;
		made.name = arena_copy(table->strings, seen->name);
		id = (uint32_t)table->functions_count++;
		table->functions[id] = made;
		idmap_add(&table->map, hash, id);
	}
	describe(table, &table->functions[id], seen);
	return table->strings->over_budget ? IDMAP_NONE : id;
}

int name_begin(struct name_table *table, struct work *work, struct resolver *resolver,
	       struct arena *strings, struct err *err)
{
	struct tree_function root = { .name = SLICE_LITERAL("total"), .kind = FRAME_UNKNOWN };
	const struct work_shared *shared = work->shared;

	*table = (struct name_table){
		.work = work,
		.resolver = resolver,
		.strings = strings,
		.wait_until_ns =
			shared->names_until_ns ? shared->names_until_ns : RESOLVE_WAIT_ALWAYS,
		.give_up_at_ns =
			shared->names_give_up_at_ns ? shared->names_give_up_at_ns : INT64_MAX,
	};
	table->texts = symbol_text_pool_new();
	arena_init(&table->scratch, work->limit_bytes);
	work_add_map(work, &table->map);
	work_add_map(work, &table->binaries_map);
	work_add_map(work, &table->symbols_map);
	unresolved_begin(&table->unresolved, work, strings);
	if (!WORK_GROW(&work->arena, table->functions, table->functions_count,
		       table->functions_capacity))
		return work_over_budget(work, err);
	/* Not in the map: no frame may become the root. */
	root.name = arena_copy(strings, root.name);
	table->functions[table->functions_count++] = root;
	return 0;
}

int name_view(struct name_table *table, const struct tables_view *view, struct err *err)
{
	assert(view->strings_count > 0);
	table->view = view;
	table->place_number = 0;
	if (table->chains_capacity < view->frames_count) {
		table->chains =
			arena_new_array(&table->work->arena, struct name_chain, view->frames_count);
		table->chains_capacity = table->chains ? view->frames_count : 0;
	} else if (view->frames_count) {
		memset(table->chains, 0, view->frames_count * sizeof(*table->chains));
	}
	table->lines_count = 0; /* of the view before */
	return table->chains || !view->frames_count ? 0 : work_over_budget(table->work, err);
}

bool name_column_begin(struct name_table *table, const struct tables_view *view,
		       struct name_column *ret)
{
	*ret = (struct name_column){ view, arena_new_array(&table->work->arena, struct name_chain,
							   view->frames_count) };
	return ret->chains;
}

void name_use_column(struct name_table *table, const struct name_column *column)
{
	table->view = column->view;
	table->chains = column->chains;
	table->chains_capacity = column->view->frames_count;
}

void name_end(struct name_table *table)
{
	for (size_t i = 0; i < table->binaries_count; i++)
		resolver_close(table->resolver, &table->binaries[i].symbols);
	symbol_text_pool_free(table->texts);
	table->work->other_bytes -= table->texts_bytes;
	arena_free(&table->scratch);
	work_drop_map(table->work, &table->unresolved.map);
	work_drop_map(table->work, &table->symbols_map);
	work_drop_map(table->work, &table->binaries_map);
	work_drop_map(table->work, &table->map);
}

static bool add_line(struct name_table *table, uint32_t function, uint32_t line, uint32_t column,
		     bool inlined)
{
	if (function == IDMAP_NONE || !WORK_GROW(&table->work->arena, table->lines,
						 table->lines_count, table->lines_capacity))
		return false;
	table->lines[table->lines_count++] = (struct name_line){ function, line, column, inlined };
	return true;
}

/* Sets both names of a function as they are to be shown. */
static void show(struct name_table *table, struct tree_function *function, struct slice name,
		 struct slice system_name)
{
	const struct function_name names = { name, system_name, function->kind };

	if (++table->scratch_uses % NAMES_PER_RESET == 0)
		arena_free(&table->scratch);
	function->name = function_name_shown(&names, table->demangle, &table->scratch);
	function->system_name = system_name.len ? system_name : name;
	if (slice_equal(function->system_name, function->name))
		function->system_name = SLICE_LITERAL("");
	if (!function->name.len)
		function->name = SLICE_LITERAL("[unknown]");
}

/* All but its names. */
static struct tree_function function_of_frame(const struct name_table *table,
					      const struct frame *frame)
{
	const struct tables_view *view = table->view;

	return (struct tree_function){
		.file = tables_text(view, frame->file),
		.mapping = tables_text(view, frame->mapping_file),
		.build_id = tables_text(view, frame->build_id),
		.kind = frame->kind < FRAME_KINDS ? (enum frame_kind)frame->kind : FRAME_UNKNOWN,
		.start_line = frame->start_line,
		.address = table->apart & NAME_APART_ADDRESS ? frame->address : 0,
	};
}

/* Its number in the list; IDMAP_NONE when over budget. Neighbours mostly are in one place. */
static uint32_t number_of_place(struct name_table *table, const struct unresolved_place *place)
{
	const struct unresolved_place *last = &table->place;

	if (table->place_number && last->reason == place->reason &&
	    last->mapping.data == place->mapping.data &&
	    last->build_id.data == place->build_id.data &&
	    last->mapping.len == place->mapping.len && last->build_id.len == place->build_id.len)
		return table->place_number;
	table->place = *place;
	table->place_number = unresolved_add(&table->unresolved, place);
	return table->place_number;
}

static uint32_t missing_number(struct name_table *table, const struct frame *frame,
			       enum unresolved_reason reason, const char *detail)
{
	const struct unresolved_place place = { reason,
						tables_text(table->view, frame->mapping_file),
						tables_text(table->view, frame->build_id),
						slice_of(detail ? detail : "") };

	assert(frame->mapping_file < table->view->strings_count);
	return number_of_place(table, &place);
}

static bool name_by_address(struct name_table *table, const struct frame *frame,
			    enum unresolved_reason reason, const char *detail)
{
	struct tree_function function = function_of_frame(table, frame);
	struct strbuf text = { 0 };
	uint32_t id;

	function.unresolved = missing_number(table, frame, reason, detail);
	if (function.unresolved == IDMAP_NONE)
		return false;
	if (table->by_address)
		return add_line(table, NAME_BY_ADDRESS, function.unresolved, 0, false);
	name_address(&text, function.mapping, frame->address);
	function.name = strbuf_slice(&text);
	function.is_address = 1;
	id = intern(table, &function, true);
	strbuf_free(&text);
	return add_line(table, id, frame->line, frame->column, false);
}

static bool binary_equal(const void *context, uint32_t id, const void *key)
{
	const struct name_binary *a = (const struct name_binary *)context + id, *b = key;

	return a->by_offset == b->by_offset && slice_equal(a->build_id, b->build_id) &&
	       slice_equal(a->mapping, b->mapping);
}

/* True if it is told by the same bytes at the same place. */
static bool binary_is(const struct name_binary *binary, const struct name_binary *sought)
{
	return binary->by_offset == sought->by_offset &&
	       binary->build_id.data == sought->build_id.data &&
	       binary->build_id.len == sought->build_id.len &&
	       binary->mapping.data == sought->mapping.data &&
	       binary->mapping.len == sought->mapping.len;
}

/*
 * Who waits must be able to leave: then the resolver's own thread reads the file. What the query's
 * end means is said by the next work_check. Who waits as long as it takes waits for the best
 * symbols, others take what there is.
 */
static void open_symbols(const struct name_table *table, struct name_binary *binary)
{
	const struct work_shared *shared = table->work->shared;
	bool wants_best = table->wait_until_ns == RESOLVE_WAIT_ALWAYS;
	int64_t last_ns = wants_best ? table->give_up_at_ns : table->wait_until_ns;
	bool can_leave = last_ns != INT64_MAX || shared->leave_names || work_may_end(table->work);
	int64_t until_ns = table->wait_until_ns;
	bool again, leaves;

	do {
		leaves = shared->leave_names && shared->leave_names(shared->leave_context);
		if (can_leave) {
			until_ns = clock_monotonic_ns() + (leaves ? 0 : LOOK_NS);
			until_ns = until_ns < last_ns ? until_ns : last_ns;
		}
		if (wants_best)
			resolver_open_best(table->resolver, binary->build_id, binary->mapping,
					   binary->by_offset, until_ns, &binary->symbols);
		else
			resolver_open(table->resolver, binary->build_id, binary->mapping,
				      binary->by_offset, until_ns, &binary->symbols);
		again = can_leave && !leaves && clock_monotonic_ns() < last_ns &&
			(binary->symbols.reason == RESOLVE_PENDING ||
			 (wants_best && binary->symbols.is_provisional));
		if (again && work_check(table->work, NULL))
			again = false;
		if (again)
			resolver_close(table->resolver, &binary->symbols);
	} while (again);
	if (binary->symbols.texts)
		symbol_texts_share(binary->symbols.texts, table->texts);
}

/* Its index, IDMAP_NONE when over budget. */
static uint32_t binary_of(struct name_table *table, const struct frame *frame)
{
	const struct tables_view *view = table->view;
	struct name_binary made = { .build_id = tables_text(view, frame->build_id),
				    .mapping = tables_text(view, frame->mapping_file),
				    .by_offset = frame->flags & FRAME_ADDR_OFFSET };
	uint64_t hash;
	uint32_t id;

	assert(frame->build_id < table->view->strings_count &&
	       frame->mapping_file < table->view->strings_count);
	/* Neighbours mostly are in one. */
	if (table->binaries_count && binary_is(&table->binaries[table->binary_last], &made))
		return table->binary_last;
	hash = hash_mix(made.by_offset, hash_bytes(made.build_id.data, made.build_id.len));
	hash = hash_mix(hash, hash_bytes(made.mapping.data, made.mapping.len));
	id = idmap_find(&table->binaries_map, hash, binary_equal, table->binaries, &made);
	if (id != IDMAP_NONE)
		return table->binary_last = id;
	if (!WORK_GROW(&table->work->arena, table->binaries, table->binaries_count,
		       table->binaries_capacity))
		return IDMAP_NONE;
	open_symbols(table, &made);
	id = (uint32_t)table->binaries_count++;
	table->binaries[id] = made;
	idmap_add(&table->binaries_map, hash, id);
	return table->binary_last = id;
}

static bool symbol_equal(const void *context, uint32_t id, const void *key)
{
	const struct name_symbol *a = (const struct name_symbol *)context + id, *b = key;

	return a->of.name == b->of.name && a->of.linkage_name == b->of.linkage_name &&
	       a->of.file == b->of.file && a->address == b->address &&
	       a->start_line == b->start_line && a->binary == b->binary && a->kind == b->kind;
}

/* The texts of a line, valid until the next call. */
static void fill_texts(struct name_table *table, uint32_t binary, struct symbol_line *line)
{
	struct symbol_texts *texts = table->binaries[binary].symbols.texts;
	size_t bytes;

	symbol_texts_trim(texts, TEXTS_BYTES_MAX);
	symbol_texts_fill(texts, line);
	bytes = symbol_text_pool_bytes(table->texts);
	table->work->other_bytes += bytes - table->texts_bytes;
	table->texts_bytes = bytes;
}

/* The function of one line of the resolver's; IDMAP_NONE when over budget. */
static uint32_t function_of_line(struct name_table *table, const struct frame *frame,
				 uint32_t binary, struct symbol_line *line)
{
	struct tree_function function = function_of_frame(table, frame);
	struct name_symbol made = { line->of, function.address, line->start_line,
				    binary,   function.kind,	0 };
	/* Side by side: both names often are one text, and hash_mix would cancel them out. */
	const uint64_t numbers[] = { (uint64_t)made.of.name << 32 | made.of.linkage_name,
				     (uint64_t)made.of.file << 32 | made.start_line,
				     (uint64_t)binary << 32 | made.kind, made.address };
	uint64_t hash = hash_bytes(numbers, sizeof(numbers));
	uint32_t id;

	assert(binary < table->binaries_count);
	id = idmap_find(&table->symbols_map, hash, symbol_equal, table->symbols, &made);
	if (id != IDMAP_NONE)
		return table->symbols[id].function;
	fill_texts(table, binary, line);
	function.file = line->file;
	function.start_line = line->start_line;
	show(table, &function, line->name, line->linkage_name);
	made.function = intern(table, &function, false);
	if (made.function == IDMAP_NONE ||
	    !WORK_GROW(&table->work->arena, table->symbols, table->symbols_count,
		       table->symbols_capacity))
		return IDMAP_NONE;
	idmap_add(&table->symbols_map, hash, (uint32_t)table->symbols_count);
	table->symbols[table->symbols_count++] = made;
	return made.function;
}

/* For a binary without a path, its build id is used. */
static struct slice unnamed_binary(const struct tree_function *function)
{
	struct slice binary = name_binary_of(function->mapping);
	struct slice id = function->build_id;

	if (binary.len)
		return binary;
	return id.len > ID_SHOWN ? slice_from(id.data, ID_SHOWN) : id;
}

/* A function that is known by its boundaries alone. */
static bool add_unnamed(struct name_table *table, const struct frame *frame,
			const struct symbol_line *line, const char *detail)
{
	struct tree_function function = function_of_frame(table, frame);
	struct slice binary = unnamed_binary(&function);
	struct strbuf text = { 0 }, place = { 0 };
	uint32_t id;

	function.unresolved = missing_number(table, frame, UNRESOLVED_NO_SYMBOLS, detail);
	if (function.unresolved == IDMAP_NONE)
		return false;
	function.file = line->file;
	symbol_unnamed_show(&text, binary, line->name, line->linkage_name);
	function.name = strbuf_slice(&text);
	if (line->linkage_name.len) /* of a guess */
		symbol_unnamed_show(&place, binary, line->linkage_name, line->name);
	function.system_name = strbuf_slice(&place);
	id = intern(table, &function, true);
	strbuf_free(&place);
	strbuf_free(&text);
	return add_line(table, id, line->line, 0, false);
}

static bool add_lines(struct name_table *table, const struct frame *frame, uint32_t binary,
		      struct symbol_line *lines, size_t count)
{
	assert(binary < table->binaries_count);
	for (size_t i = 0; i < count; i++)
		if (!add_line(table, function_of_line(table, frame, binary, &lines[i]),
			      lines[i].line, 0, i + 1 < count))
			return false;
	return true;
}

static enum unresolved_reason unresolved_reason_of(enum resolve_reason reason)
{
	switch (reason) {
	case RESOLVE_NO_SYMBOLS:
		return UNRESOLVED_NO_SYMBOLS;
	case RESOLVE_OUTSIDE:
		return UNRESOLVED_OUTSIDE_FILE;
	case RESOLVE_BAD_FILE:
		return UNRESOLVED_BAD_FILE;
	case RESOLVE_NO_BUILD_ID:
		return UNRESOLVED_NO_BUILD_ID;
	case RESOLVE_PENDING:
		return UNRESOLVED_PENDING;
	default:
		return UNRESOLVED_NO_FILE;
	}
}

static bool name_by_resolver(struct name_table *table, const struct frame *frame,
			     bool *ret_resolved)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	uint32_t binary = binary_of(table, frame);
	const struct resolver_symbols *symbols;
	enum resolve_reason reason;
	size_t count;

	if (binary == IDMAP_NONE)
		return false;
	symbols = &table->binaries[binary].symbols;
	reason = resolver_find_lines(symbols, frame->address, frame->flags & FRAME_ADDR_OFFSET,
				     lines, &count);
	table->pending += reason == RESOLVE_PENDING;
	*ret_resolved = count > 0;
	if (!count)
		return name_by_address(table, frame, unresolved_reason_of(reason), symbols->detail);
	if (lines[count - 1].is_unnamed) {
		fill_texts(table, binary, &lines[count - 1]);
		return add_unnamed(table, frame, &lines[count - 1], symbols->detail);
	}
	return add_lines(table, frame, binary, lines, count);
}

/* "[anon]", "[stack]" and "[unknown file]" are none. */
static bool is_file(struct slice mapping)
{
	return mapping.len && mapping.data[0] != '[';
}

/* Why a frame without a name is not looked up, by where it lies. */
static enum unresolved_reason reason_of_place(const struct name_table *table,
					      const struct frame *frame)
{
	struct slice mapping = tables_text(table->view, frame->mapping_file);

	if (frame->kind == FRAME_KERNEL)
		return UNRESOLVED_KERNEL;
	if (slice_is(mapping, "[anon]") || slice_is(mapping, "[jit]") ||
	    is_interpreted((enum frame_kind)frame->kind))
		return UNRESOLVED_GENERATED;
	return is_file(mapping) ? UNRESOLVED_NO_FILE : UNRESOLVED_UNKNOWN_PLACE;
}

static bool is_resolvable(const struct name_table *table, const struct frame *frame)
{
	return table->resolver && !is_interpreted((enum frame_kind)frame->kind) &&
	       frame->kind != FRAME_MARKER &&
	       (table->view->strings[frame->build_id].len ||
		is_file(tables_text(table->view, frame->mapping_file)));
}

/*
 * The kernel's functions are named where they are sampled; where its file is known, that has the
 * lines and inlined callers besides. *ret_done: it had.
 */
static bool name_kernel(struct name_table *table, const struct frame *frame, bool *ret_done)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	uint32_t binary;
	size_t count;

	*ret_done = false;
	if (frame->kind != FRAME_KERNEL || !frame->address || !table->resolver ||
	    !table->view->strings[frame->build_id].len)
		return true;
	binary = binary_of(table, frame);
	if (binary == IDMAP_NONE)
		return false;
	table->pending += resolver_find_lines(&table->binaries[binary].symbols, frame->address,
					      false, lines, &count) == RESOLVE_PENDING;
	*ret_done = count > 0 && !lines[count - 1].is_unnamed;
	return !*ret_done || add_lines(table, frame, binary, lines, count);
}

static bool name_new(struct name_table *table, const struct frame *frame, bool *ret_resolved)
{
	*ret_resolved = true;
	if (table->view->strings[frame->function].len) {
		struct tree_function function = function_of_frame(table, frame);
		bool done;

		if (!name_kernel(table, frame, &done) || done)
			return done;
		show(table, &function, tables_text(table->view, frame->function),
		     tables_text(table->view, frame->system_name));
		return add_line(table, intern(table, &function, false), frame->line, frame->column,
				frame->flags & FRAME_INLINED);
	}
	if (is_resolvable(table, frame))
		return name_by_resolver(table, frame, ret_resolved);
	*ret_resolved = false;
	return name_by_address(table, frame, reason_of_place(table, frame), NULL);
}

const struct name_chain *name_frame(struct name_table *table, uint32_t frame)
{
	struct name_chain *chain = &table->chains[frame];

	if (!chain->line_count) {
		chain->line_first = (uint32_t)table->lines_count;
		if (!name_new(table, &table->view->frames[frame], &chain->resolved))
			return NULL;
		chain->line_count = (uint32_t)table->lines_count - chain->line_first;
	}
	return chain;
}

uint32_t name_missing(struct name_table *table, uint32_t id, bool *ret_is_address)
{
	const struct frame *frame = &table->view->frames[id];
	const struct resolver_symbols *symbols;
	enum resolve_reason reason;
	uint32_t binary;
	bool done;

	assert(id < table->view->frames_count);
	*ret_is_address = false;
	/* That of the kernel may be pending. */
	if (table->view->strings[frame->function].len)
		return name_kernel(table, frame, &done) ? 0 : IDMAP_NONE;
	*ret_is_address = true;
	if (!is_resolvable(table, frame))
		return missing_number(table, frame, reason_of_place(table, frame), NULL);
	binary = binary_of(table, frame);
	if (binary == IDMAP_NONE)
		return IDMAP_NONE;
	symbols = &table->binaries[binary].symbols;
	reason = resolver_check(symbols, frame->address, frame->flags & FRAME_ADDR_OFFSET,
				ret_is_address);
	table->pending += reason == RESOLVE_PENDING;
	return reason == RESOLVE_OK ? 0
				    : missing_number(table, frame, unresolved_reason_of(reason),
						     symbols->detail);
}

uint32_t name_line_missing(const struct name_table *table, const struct name_line *line)
{
	return line->function == NAME_BY_ADDRESS ? line->line
						 : table->functions[line->function].unresolved;
}

uint32_t name_group(struct name_table *table, struct slice value)
{
	return intern(table, &(struct tree_function){ .name = value, .is_label = 1 }, false);
}
