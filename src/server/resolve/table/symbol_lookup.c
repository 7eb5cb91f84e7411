/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/table/symbol_lookup.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/order/sort.h"
#include "server/resolve/table/symbol_pack.h"

#define CACHE_LINE_BYTES 64
#define PREFETCH_BYTES_MAX 320
#define TOGETHER_MAX 16 /* addresses whose data is loaded at the same time */

/* Sorting pays where the table is larger than the caches, and the addresses are dense enough. */
#define SORT_FROM_TABLE_BYTES ((size_t)4 << 20)
#define SORT_FROM_COUNT 512
#define SORT_COUNT_MAX ((size_t)1 << 18) /* at a time: 4 MB of keys */
#define SORT_DIGIT_BITS 10

/* The bytes of the block that a record is in; NULL when there is none. */
static const uint8_t *block_of(const struct symbol_table *table,
			       const struct symbol_records *records, uint32_t index,
			       uint64_t *ret_bytes)
{
	const uint8_t *part = table->bytes + records->span.offset;
	uint64_t block = index / SYMBOL_PACK_RECORDS;
	uint32_t start, end;

	if (index >= records->count)
		return NULL;
	start = symbol_u32(part + 4 * block);
	end = symbol_u32(part + 4 * block + 4);
	if (start > end || end > records->span.bytes)
		return NULL;
	*ret_bytes = end - start;
	return part + start;
}

/* Begins to load a block that will be read soon. */
static void prefetch(const uint8_t *at, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes && i < PREFETCH_BYTES_MAX; i += CACHE_LINE_BYTES)
		__builtin_prefetch(at + i);
}

/* A block that was opened, so that its neighbours need not do so again. */
struct open_pack {
	uint32_t block; /* SYMBOL_NONE: none */
	struct symbol_pack pack;
};

static inline bool open_record(const struct symbol_table *table,
			       const struct symbol_records *records, uint32_t index,
			       unsigned fields, struct open_pack *open)
{
	const uint8_t *bytes;
	uint64_t len;

	if (open->block != index / SYMBOL_PACK_RECORDS) {
		bytes = block_of(table, records, index, &len);
		open->block = SYMBOL_NONE;
		if (bytes)
			prefetch(bytes, len);
		if (!bytes || !symbol_pack_open(bytes, len, fields, &open->pack))
			return false;
		open->block = index / SYMBOL_PACK_RECORDS;
	}
	return index % SYMBOL_PACK_RECORDS < open->pack.count;
}

/* Of functions of which the file does not tell where they are declared: most that have no DWARF. */
static struct symbol_place undeclared[SYMBOL_PACK_RECORDS];

static struct symbol_place *unpack_declared(const struct symbol_table *table, uint32_t block)
{
	struct symbol_place places[SYMBOL_PACK_RECORDS] = { 0 }, *ret;
	struct open_pack open = { .block = SYMBOL_NONE };
	bool is_any = false;

	for (uint32_t i = 0; i < SYMBOL_PACK_RECORDS; i++) {
		uint32_t function = block * SYMBOL_PACK_RECORDS + i;
		bool is_patch;

		if (!open_record(table, &table->functions, function, FUNCTION_FIELDS, &open))
			break;
		places[i] = (struct symbol_place){
			.file = symbol_pack_get(&open.pack, FUNCTION_FILE, i, &is_patch),
			.line = symbol_pack_get(&open.pack, FUNCTION_LINE, i, &is_patch),
		};
		is_any |= places[i].file || places[i].line;
	}
	if (!is_any)
		return undeclared;
	ret = mem_new_array(struct symbol_place, SYMBOL_PACK_RECORDS);
	memcpy(ret, places, sizeof(places));
	return ret;
}

static void free_declared(struct symbol_place *places)
{
	if (places != undeclared)
		free(places);
}

/*
 * Where functions are declared, as far as the file tells: each look-up needs it of each frame. A
 * block of them is unpacked when one is met, by the thread that meets it first, and stays.
 */
static struct symbol_place *declared_block(const struct symbol_table *table, uint32_t block)
{
	_Atomic(struct symbol_place *) *at = &table->declared[block];
	struct symbol_place *places = atomic_load_explicit(at, memory_order_acquire), *first = NULL;

	if (places)
		return places;
	places = unpack_declared(table, block);
	if (atomic_compare_exchange_strong(at, &first, places))
		return places;
	free_declared(places);
	return first;
}

static void prefetch_declared(const struct symbol_table *table, uint32_t function)
{
	const struct symbol_place *places = atomic_load_explicit(
		&table->declared[function / SYMBOL_PACK_RECORDS], memory_order_acquire);

	if (places)
		__builtin_prefetch(&places[function % SYMBOL_PACK_RECORDS]);
}

struct symbol_place symbol_lookup_declared(const struct symbol_table *table, uint32_t function)
{
	if (function >= table->functions.count)
		return (struct symbol_place){ 0 };
	return declared_block(table,
			      function / SYMBOL_PACK_RECORDS)[function % SYMBOL_PACK_RECORDS];
}

static inline uint32_t start_of(const struct symbol_table *table, uint32_t block)
{
	return symbol_u32(table->bytes + table->starts.offset +
			  (uint64_t)block * SYMBOL_START_BYTES);
}

/*
 * Where a search begins: code is spread evenly enough that a slice of the address space has a block
 * or two. Of one region only, which is what programs have; more are searched from end to end.
 */
static void index_starts(struct symbol_table *table)
{
	uint32_t block = 0;
	uint64_t last; /* of a damaged table it may have all 32 bits */

	if (table->regions_count != 1 || !table->blocks_count)
		return;
	last = start_of(table, table->blocks_count - 1);
	while (last >> table->slice_shift >= table->blocks_count)
		table->slice_shift++;
	table->slices_count = (uint32_t)(last >> table->slice_shift) + 1;
	table->slices = mem_new_array(uint32_t, table->slices_count + 1ull);
	for (uint32_t i = 0; i <= table->slices_count; i++) {
		while (block + 1 < table->blocks_count &&
		       (uint64_t)start_of(table, block + 1) <= (uint64_t)i << table->slice_shift)
			block++;
		table->slices[i] = block;
	}
}

static uint32_t declared_blocks(const struct symbol_table *table)
{
	return table->functions.count / SYMBOL_PACK_RECORDS +
	       (table->functions.count % SYMBOL_PACK_RECORDS != 0);
}

void symbol_lookup_prepare(struct symbol_table *table)
{
	table->declared = mem_calloc(declared_blocks(table) + 1ull, sizeof(*table->declared));
	index_starts(table);
}

void symbol_lookup_free(struct symbol_table *table)
{
	for (uint32_t i = 0; table->declared && i < declared_blocks(table); i++)
		free_declared(table->declared[i]);
	free(table->declared);
	free(table->slices);
}

/* The last of the blocks [first, end) at or below `low`, or `first`. */
static uint32_t search_starts(const struct symbol_table *table, uint32_t first, uint32_t end,
			      uint32_t low)
{
	for (uint32_t count = end - first; count > 1;) {
		uint32_t half = count / 2;

		if (start_of(table, first + half) <= low)
			first += half;
		count -= half;
	}
	return first;
}

/* Where the block of an address is searched for: [first, end). */
struct place {
	uint64_t base, behind; /* of the region; of the address, behind that */
	uint32_t low, first, end;
};

/* As far as it is told without looking at blocks; false when the address is before all code. */
static bool find_region(const struct symbol_table *table, uint64_t address, struct place *ret)
{
	const uint8_t *regions = table->bytes + table->regions.offset;
	uint32_t region = table->regions_count;

	while (region &&
	       symbol_u64(regions + (uint64_t)(region - 1) * SYMBOL_REGION_BYTES) > address)
		region--;
	if (!region--)
		return false;
	ret->base = symbol_u64(regions + (uint64_t)region * SYMBOL_REGION_BYTES);
	ret->first = symbol_u32(regions + (uint64_t)region * SYMBOL_REGION_BYTES + 8);
	ret->end = region + 1 < table->regions_count
			   ? symbol_u32(regions + ((uint64_t)region + 1) * SYMBOL_REGION_BYTES + 8)
			   : table->blocks_count;
	ret->behind = address - ret->base;
	ret->low = ret->behind < UINT32_MAX ? (uint32_t)ret->behind : UINT32_MAX;
	return ret->first < ret->end && ret->end <= table->blocks_count;
}

static uint32_t slice_of_place(const struct symbol_table *table, const struct place *place)
{
	uint64_t slice = (uint64_t)place->low >> table->slice_shift;

	return slice < table->slices_count ? (uint32_t)slice : table->slices_count - 1;
}

static void narrow(const struct symbol_table *table, struct place *place)
{
	uint32_t slice;

	if (!table->slices)
		return;
	slice = slice_of_place(table, place);
	place->first = table->slices[slice];
	if ((uint64_t)place->low >> table->slice_shift == slice)
		place->end = table->slices[slice + 1] + 1;
}

/* The block that holds the address, and how far behind its start; false when none does. */
static bool find_block(const struct symbol_table *table, const struct place *place,
		       uint32_t *ret_block, uint64_t *ret_behind)
{
	uint32_t start;

	*ret_block = search_starts(table, place->first, place->end, place->low);
	start = start_of(table, *ret_block);
	*ret_behind = place->behind - start;
	return start <= place->behind;
}

/* Begins to load a block of rows; NULL when the table is damaged there. */
static const uint8_t *load_rows(const struct symbol_table *table, uint32_t number,
				uint64_t *ret_bytes)
{
	const uint8_t *start =
		table->bytes + table->starts.offset + (uint64_t)number * SYMBOL_START_BYTES;
	uint32_t at = symbol_u32(start + 4), end = symbol_u32(start + SYMBOL_START_BYTES + 4);
	const uint8_t *rows = table->bytes + table->rows.offset + at;

	if (end > table->rows.bytes || at > end)
		return NULL;
	prefetch(rows, end - at);
	*ret_bytes = end - at;
	return rows;
}

/* Opens a block of rows, unless it is open. */
static bool open_rows(const struct symbol_table *table, uint32_t number, struct open_pack *open)
{
	const uint8_t *rows;
	uint64_t bytes;

	if (open->block == number)
		return true;
	open->block = SYMBOL_NONE;
	rows = load_rows(table, number, &bytes);
	if (!rows || !symbol_pack_open(rows, bytes, ROW_FIELDS, &open->pack))
		return false;
	open->block = number;
	return true;
}

#define EIGHT 8u
#define EIGHT_WIDTH_MIN 3u /* so that the sum of eight fits two fields */
#define EIGHT_WIDTH_MAX 7u /* so that eight fit what one load has */

/* The sum of eight neighbouring fields: of pairs, then of these by multiplication. */
static uint64_t sum_of_eight(const uint8_t *bits, uint64_t bit, unsigned width)
{
	const uint64_t ones = 1 | 1ull << 2 * width | 1ull << 4 * width | 1ull << 6 * width;
	const uint64_t even = ((1ull << width) - 1) * ones;
	uint64_t fields = symbol_u64(bits + bit / 8) >> bit % 8;
	uint64_t pairs = (fields & even) + (fields >> width & even);

	return pairs * ones >> 6 * width & ((1ull << 2 * width) - 1);
}

/* Goes on by eight rows as long as all are at or below `wanted`; returns the first not gone over.
 */
static unsigned skip_eights(const struct symbol_pack *rows, uint64_t wanted, uint64_t *at)
{
	const struct symbol_pack_field *steps = &rows->fields[ROW_STEP];
	const uint64_t escape = steps->base + (1ull << steps->width) - 1;
	uint64_t bit = steps->at + steps->width, patch_at = steps->patches_at;
	unsigned next = 1, left = steps->patches;

	for (; next + EIGHT <= rows->count; next += EIGHT, bit += (uint64_t)EIGHT * steps->width) {
		uint64_t sum =
			EIGHT * (uint64_t)steps->base + sum_of_eight(rows->bits, bit, steps->width);

		for (; left; left--) {
			uint32_t index = symbol_bits(rows->bits, patch_at, SYMBOL_PACK_INDEX_BITS);

			if (index >= next + EIGHT)
				break;
			if (index >= next)
				sum += symbol_bits(rows->bits, patch_at + SYMBOL_PACK_INDEX_BITS,
						   steps->patch_width) -
				       escape;
			patch_at += SYMBOL_PACK_INDEX_BITS + steps->patch_width;
		}
		if (*at + sum > wanted)
			break;
		*at += sum;
	}
	return next;
}

/* The last row at or below `wanted` bytes from the block's start, which is where the first is. */
static unsigned find_row(const struct symbol_pack *rows, uint64_t wanted)
{
	const struct symbol_pack_field *steps = &rows->fields[ROW_STEP];
	const uint64_t mask = (1ull << steps->width) - 1;
	const uint64_t escape = steps->patches ? mask : UINT64_MAX;
	uint64_t at = 0, bit;
	unsigned next = 1;

	if (steps->width >= EIGHT_WIDTH_MIN && steps->width <= EIGHT_WIDTH_MAX)
		next = skip_eights(rows, wanted, &at);
	for (bit = steps->at + (uint64_t)next * steps->width; next < rows->count; next++) {
		uint64_t step = symbol_u64(rows->bits + bit / 8) >> bit % 8 & mask;
		uint32_t patch;

		if (step == escape && symbol_pack_patch(rows, steps, next, &patch))
			at += patch;
		else
			at += steps->base + step;
		if (at > wanted)
			break;
		bit += steps->width;
	}
	return next - 1;
}

/* What a row or a scope says of its place: told from a declaration that is looked up later. */
struct told_place {
	uint32_t file; /* 0: that of the declaration */
	uint32_t line;
	bool is_line; /* else it counts from the declaration */
};

static struct told_place read_place(const struct symbol_pack *pack, unsigned record,
				    unsigned line_field, unsigned file_field)
{
	struct told_place place;
	bool is_patch;

	place.line = symbol_pack_get(pack, line_field, record, &place.is_line);
	place.file = symbol_pack_get(pack, file_field, record, &is_patch);
	return place;
}

static struct symbol_place place_told(const struct told_place *told,
				      const struct symbol_place *declared)
{
	return (struct symbol_place){
		.file = told->file ? told->file : declared->file,
		.line = told->is_line ? told->line : told->line + declared->line,
	};
}

/* A frame that is known but for the declaration of its function. */
struct link {
	uint32_t function;
	struct told_place place;
};

/* The functions of a scope and of those around it, innermost first; begins to load where they are
 * declared. */
static size_t read_chain(const struct symbol_table *table, uint32_t scope, struct told_place place,
			 struct open_pack *open, struct link ret[SYMBOL_CHAIN_MAX])
{
	size_t count = 0;

	for (;;) {
		unsigned record = scope % SYMBOL_PACK_RECORDS;
		uint32_t function, step;
		bool is_patch;

		if (!open_record(table, &table->scopes, scope, SCOPE_FIELDS, open))
			return 0;
		function = symbol_pack_get(&open->pack, SCOPE_FUNCTION, record, &is_patch);
		if (function < table->functions.count)
			prefetch_declared(table, function);
		ret[count++] = (struct link){ function, place };
		step = symbol_pack_get(&open->pack, SCOPE_PARENT_STEP, record, &is_patch);
		if (!step || step > scope || count == SYMBOL_CHAIN_MAX)
			return count;
		place = read_place(&open->pack, record, SCOPE_LINE, SCOPE_FILE);
		scope -= step;
	}
}

static void finish_frames(const struct symbol_table *table, const struct link *links, size_t count,
			  struct symbol_frame *ret)
{
	for (size_t i = 0; i < count; i++) {
		struct symbol_place declared = symbol_lookup_declared(table, links[i].function);
		struct symbol_place place = place_told(&links[i].place, &declared);

		ret[i] = (struct symbol_frame){ links[i].function, place.file, place.line };
	}
}

/* What a row says. */
struct told_row {
	uint32_t scope; /* its number + 1; 0: none */
	struct told_place place;
};

/* The row of an address `behind` the start of a block; false when the block is damaged. */
static bool read_row(const struct symbol_table *table, uint32_t block, uint64_t behind,
		     struct open_pack *open, struct told_row *ret)
{
	unsigned row;
	bool is_patch;

	if (!open_rows(table, block, open))
		return false;
	row = find_row(&open->pack, behind);
	ret->scope = symbol_pack_get(&open->pack, ROW_SCOPE, row, &is_patch);
	ret->place = read_place(&open->pack, row, ROW_LINE, ROW_FILE);
	return true;
}

/* A place without a function; a row that says nothing has none. */
static size_t bare_frame(const struct told_row *row, struct symbol_frame *ret)
{
	*ret = (struct symbol_frame){ SYMBOL_NONE, row->place.file, row->place.line };
	return row->place.line ? 1 : 0;
}

/* Clearing all of it would take longer than a look-up. */
static inline void open_none(struct open_pack *open)
{
	open->block = SYMBOL_NONE;
	open->pack.count = 0;
}

size_t symbol_lookup(const struct symbol_table *table, uint64_t address,
		     struct symbol_frame ret_frames[SYMBOL_CHAIN_MAX])
{
	struct link links[SYMBOL_CHAIN_MAX];
	struct open_pack open;
	struct place place;
	struct told_row row;
	uint64_t behind;
	uint32_t block;
	size_t count;

	open_none(&open);
	if (!find_region(table, address, &place))
		return 0;
	narrow(table, &place);
	if (!find_block(table, &place, &block, &behind) ||
	    !read_row(table, block, behind, &open, &row))
		return 0;
	if (!row.scope)
		return bare_frame(&row, ret_frames);
	open_none(&open);
	count = read_chain(table, row.scope - 1, row.place, &open, links);
	finish_frames(table, links, count, ret_frames);
	return count;
}

bool symbol_lookup_scope(const struct symbol_table *table, uint32_t scope,
			 struct symbol_caller *ret)
{
	struct told_place told;
	struct symbol_place declared, place;
	struct open_pack open;
	unsigned record = scope % SYMBOL_PACK_RECORDS;
	uint32_t step;
	bool is_patch;

	open_none(&open);
	if (!open_record(table, &table->scopes, scope, SCOPE_FIELDS, &open))
		return false;
	*ret = (struct symbol_caller){ .scope = SYMBOL_NONE };
	ret->function = symbol_pack_get(&open.pack, SCOPE_FUNCTION, record, &is_patch);
	step = symbol_pack_get(&open.pack, SCOPE_PARENT_STEP, record, &is_patch);
	if (!step || step > scope)
		return true;
	told = read_place(&open.pack, record, SCOPE_LINE, SCOPE_FILE);
	if (!open_record(table, &table->scopes, scope - step, SCOPE_FIELDS, &open))
		return false;
	declared = symbol_lookup_declared(
		table, symbol_pack_get(&open.pack, SCOPE_FUNCTION,
				       (scope - step) % SYMBOL_PACK_RECORDS, &is_patch));
	place = place_told(&told, &declared);
	ret->scope = scope - step;
	ret->file = place.file;
	ret->line = place.line;
	return true;
}

/* One of the addresses that are looked up together. */
struct lookup {
	size_t index; /* among all that were asked for */
	uint64_t address, behind;
	struct place place;
	uint32_t block;
	bool is_found, has_scope;
	struct told_row row;
	uint32_t function; /* of the scope; or of links: the first, and how many */
	size_t first, count;
};

/* Blocks of the look-up before: of addresses in order, the next one mostly needs the same. */
struct walk {
	const struct symbol_table *table;
	struct open_pack rows, scopes;
	struct lookup lookups[TOGETHER_MAX];
	size_t count;
};

/* Finds the blocks of rows. Each step begins to load what the next one reads. */
static void find_blocks(struct walk *walk)
{
	const struct symbol_table *table = walk->table;
	const uint8_t *starts = table->bytes + table->starts.offset;

	for (size_t i = 0; i < walk->count; i++) {
		struct lookup *lookup = &walk->lookups[i];

		lookup->is_found = find_region(table, lookup->address, &lookup->place);
		if (lookup->is_found && table->slices)
			__builtin_prefetch(&table->slices[slice_of_place(table, &lookup->place)]);
	}
	for (size_t i = 0; i < walk->count; i++) {
		struct lookup *lookup = &walk->lookups[i];

		if (!lookup->is_found)
			continue;
		narrow(table, &lookup->place);
		__builtin_prefetch(starts + (uint64_t)lookup->place.first * SYMBOL_START_BYTES);
	}
	for (size_t i = 0; i < walk->count; i++) {
		struct lookup *lookup = &walk->lookups[i];
		uint64_t bytes;

		lookup->is_found = lookup->is_found && find_block(table, &lookup->place,
								  &lookup->block, &lookup->behind);
		if (lookup->is_found && lookup->block != walk->rows.block)
			load_rows(table, lookup->block, &bytes);
	}
}

/* Reads the rows, and begins to load the innermost scopes: callers mostly are beside them. */
static void read_rows(struct walk *walk)
{
	const struct symbol_table *table = walk->table;
	const uint8_t *offsets = table->bytes + table->scopes.span.offset;

	for (size_t i = 0; i < walk->count; i++) {
		struct lookup *lookup = &walk->lookups[i];

		lookup->is_found =
			lookup->is_found &&
			read_row(table, lookup->block, lookup->behind, &walk->rows, &lookup->row);
		lookup->has_scope = lookup->is_found && lookup->row.scope &&
				    lookup->row.scope <= table->scopes.count;
		if (lookup->has_scope)
			__builtin_prefetch(offsets + 4 * (size_t)((lookup->row.scope - 1) /
								  SYMBOL_PACK_RECORDS));
	}
	for (size_t i = 0; i < walk->count; i++) {
		const uint8_t *bytes = NULL;
		uint64_t len;

		if (walk->lookups[i].has_scope)
			bytes = block_of(table, &table->scopes, walk->lookups[i].row.scope - 1,
					 &len);
		if (bytes)
			prefetch(bytes, len);
	}
}

/* The chains of all, one behind the other. */
static void read_chains(struct walk *walk, struct link *links)
{
	size_t end = 0;

	for (size_t i = 0; i < walk->count; i++) {
		struct lookup *lookup = &walk->lookups[i];

		lookup->first = end;
		lookup->count = 0;
		if (lookup->has_scope)
			lookup->count = read_chain(walk->table, lookup->row.scope - 1,
						   lookup->row.place, &walk->scopes, links + end);
		end += lookup->count;
	}
}

/* What is done with the addresses of a walk whose rows were read. */
typedef void finish_f(struct walk *walk, void *context);

struct visit {
	symbol_lookup_visit_f *visit;
	void *context;
	struct link links[TOGETHER_MAX * SYMBOL_CHAIN_MAX];
};

static void visit_all(struct walk *walk, void *context)
{
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	struct visit *visit = context;

	read_chains(walk, visit->links);
	for (size_t i = 0; i < walk->count; i++) {
		const struct lookup *lookup = &walk->lookups[i];
		size_t count = lookup->count;

		finish_frames(walk->table, visit->links + lookup->first, count, frames);
		if (lookup->is_found && !lookup->row.scope)
			count = bare_frame(&lookup->row, frames);
		visit->visit(visit->context, lookup->index, frames, count);
	}
}

static void note_locations(struct walk *walk, void *context)
{
	const struct symbol_table *table = walk->table;
	struct symbol_location *locations = context;

	for (size_t i = 0; i < walk->count; i++) {
		struct lookup *lookup = &walk->lookups[i];
		uint32_t scope = lookup->row.scope - 1;
		bool is_patch;

		if (!lookup->has_scope)
			continue;
		lookup->has_scope =
			open_record(table, &table->scopes, scope, SCOPE_FIELDS, &walk->scopes);
		if (!lookup->has_scope)
			continue;
		lookup->function = symbol_pack_get(&walk->scopes.pack, SCOPE_FUNCTION,
						   scope % SYMBOL_PACK_RECORDS, &is_patch);
		if (lookup->function < table->functions.count)
			prefetch_declared(table, lookup->function);
	}
	for (size_t i = 0; i < walk->count; i++) {
		const struct lookup *lookup = &walk->lookups[i];
		struct symbol_location *location = &locations[lookup->index];
		struct symbol_place declared = { 0 }, place;

		*location = (struct symbol_location){ .scope = SYMBOL_NONE };
		if (!lookup->is_found || (lookup->row.scope && !lookup->has_scope))
			continue;
		if (lookup->has_scope) {
			declared = symbol_lookup_declared(table, lookup->function);
			location->scope = lookup->row.scope - 1;
		}
		place = place_told(&lookup->row.place, &declared);
		location->file = place.file;
		location->line = place.line;
	}
}

static void walk_on(struct walk *walk, finish_f *finish, void *context)
{
	find_blocks(walk);
	read_rows(walk);
	finish(walk, context);
	walk->count = 0;
}

/*
 * The numbers of some addresses, in the lower halves of what is returned: as near to the order of
 * addresses as blocks of rows are told apart. `keys` has room for twice as many.
 */
static const uint64_t *sort_addresses(const struct symbol_table *table, const uint64_t *addresses,
				      size_t count, uint64_t *keys)
{
	unsigned end = 32 + table->slice_shift, shift = 32 + table->slice_shift;
	uint64_t *sorted = keys, *other = keys + count;

	while ((1ull << (end - shift)) < table->slices_count)
		end++;
	for (size_t i = 0; i < count; i++) {
		struct place place = { 0 };

		find_region(table, addresses[i], &place);
		keys[i] = (uint64_t)place.low << 32 | i;
	}
	for (; shift < end; shift += SORT_DIGIT_BITS) {
		uint64_t *before = sorted;

		sort_by_digit(sorted, other, count, shift, SORT_DIGIT_BITS);
		sorted = other;
		other = before;
	}
	return sorted;
}

static void walk_all(const struct symbol_table *table, const uint64_t *addresses, size_t count,
		     finish_f *finish, void *context)
{
	size_t at_once = count < SORT_COUNT_MAX ? count : SORT_COUNT_MAX;
	struct walk walk;
	uint64_t *keys = NULL;

	if (table->slices && table->len >= SORT_FROM_TABLE_BYTES && count >= SORT_FROM_COUNT)
		keys = mem_new_array(uint64_t, 2 * at_once);
	walk.table = table;
	walk.count = 0;
	open_none(&walk.rows);
	open_none(&walk.scopes);
	for (size_t at = 0; at < count; at += at_once) {
		size_t some = count - at < at_once ? count - at : at_once;
		const uint64_t *order =
			keys ? sort_addresses(table, addresses + at, some, keys) : NULL;

		for (size_t i = 0; i < some; i++) {
			struct lookup *lookup = &walk.lookups[walk.count++];

			lookup->index = at + (order ? (uint32_t)order[i] : i);
			lookup->address = addresses[lookup->index];
			if (walk.count == TOGETHER_MAX)
				walk_on(&walk, finish, context);
		}
	}
	if (walk.count)
		walk_on(&walk, finish, context);
	free(keys);
}

void symbol_lookup_many(const struct symbol_table *table, const uint64_t *addresses, size_t count,
			symbol_lookup_visit_f *visit, void *context)
{
	struct visit visits; /* large, and not cleared: links are written before they are read */

	visits.visit = visit;
	visits.context = context;
	walk_all(table, addresses, count, visit_all, &visits);
}

void symbol_lookup_locations(const struct symbol_table *table, const uint64_t *addresses,
			     size_t count, struct symbol_location *ret_locations)
{
	walk_all(table, addresses, count, note_locations, ret_locations);
}
