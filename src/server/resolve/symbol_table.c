/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/symbol_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/resolve/symbol_pack.h"

#define CACHE_LINE_BYTES 64
#define PREFETCH_BYTES_MAX 320
#define TABLE_BYTES_MAX ((uint64_t)8 << 30)
#define TOGETHER_MAX 16 /* addresses whose data is loaded at the same time */

const char *symbol_origin_text(enum symbol_origin origin)
{
	static const char *const texts[SYMBOL_ORIGINS] = {
		[SYMBOL_ORIGIN_NONE] = "nothing",
		[SYMBOL_ORIGIN_SYMBOLS] = "symbol tables",
		[SYMBOL_ORIGIN_LINES] = "line tables without functions",
		[SYMBOL_ORIGIN_GO] = "Go's table of functions",
		[SYMBOL_ORIGIN_DWARF] = "DWARF",
	};

	return origin < SYMBOL_ORIGINS ? texts[origin] : "unknown";
}

void symbol_table_free(struct symbol_table *table)
{
	if (!table)
		return;
	if (table->len)
		munmap((void *)(uintptr_t)table->bytes, table->len);
	free(table->declared);
	free(table->slices);
	free(table->note);
	free(table);
}

uint32_t symbol_table_maker(void)
{
	return hash_crc32c(0, FIRN_VERSION, strlen(FIRN_VERSION));
}

int symbol_table_set_tries(int fd, uint8_t tries, struct err *err)
{
	uint8_t header[SYMBOL_HEADER_BYTES];
	uint32_t crc;

	if (pread(fd, header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return err_set_errno(err, errno, "read a symbol table");
	header[SYMBOL_AT_TRIES] = tries;
	crc = htole32(hash_crc32c(0, header + SYMBOL_AT_BODY_CRC,
				  SYMBOL_HEADER_BYTES - SYMBOL_AT_BODY_CRC));
	memcpy(header + SYMBOL_AT_HEADER_CRC, &crc, sizeof(crc));
	if (pwrite(fd, header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return err_set_errno(err, errno, "write a symbol table");
	return 0;
}

size_t symbol_table_bytes(const struct symbol_table *table)
{
	return table->len;
}

static uint32_t count_at(const struct symbol_table *table, enum symbol_count count)
{
	return symbol_u32(table->bytes + SYMBOL_AT_COUNTS + 4 * (size_t)count);
}

static struct symbol_span span_at(const struct symbol_table *table, enum symbol_part part)
{
	const uint8_t *at = table->bytes + SYMBOL_AT_SPANS + 16 * (size_t)part;

	return (struct symbol_span){ symbol_u64(at), symbol_u64(at + 8) };
}

static int corrupt(const char *name, const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "open symbol table \"%s\": %s", name, what);
}

/* The sums first: nothing else is looked at before. */
static int check_sums(const struct symbol_table *table, const char *name, struct err *err)
{
	const uint8_t *bytes = table->bytes;

	if (table->len < SYMBOL_HEADER_BYTES || memcmp(bytes, SYMBOL_MAGIC, 8))
		return corrupt(name, "it is no symbol table", err);
	if (symbol_u32(bytes + SYMBOL_AT_VERSION) != SYMBOL_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			       "open symbol table \"%s\": version %" PRIu32 ", expected %d", name,
			       symbol_u32(bytes + SYMBOL_AT_VERSION), SYMBOL_VERSION);
	if (hash_crc32c(0, bytes + SYMBOL_AT_BODY_CRC, SYMBOL_HEADER_BYTES - SYMBOL_AT_BODY_CRC) !=
	    symbol_u32(bytes + SYMBOL_AT_HEADER_CRC))
		return corrupt(name, "wrong checksum of the header", err);
	if (symbol_u64(bytes + SYMBOL_AT_BODY_BYTES) != table->len - SYMBOL_HEADER_BYTES)
		return corrupt(name, "it is cut off", err);
	if (hash_crc32c(0, bytes + SYMBOL_HEADER_BYTES, table->len - SYMBOL_HEADER_BYTES) !=
	    symbol_u32(bytes + SYMBOL_AT_BODY_CRC))
		return corrupt(name, "wrong checksum", err);
	return 0;
}

/* Every part lies behind the header and before the slack, and has room for what is counted. */
static bool part_fits(const struct symbol_table *table, enum symbol_part part, uint64_t count,
		      uint64_t each)
{
	struct symbol_span span = span_at(table, part);
	uint64_t end = table->len - SYMBOL_SLACK_BYTES;

	return span.offset >= SYMBOL_HEADER_BYTES && span.offset <= end &&
	       span.bytes <= end - span.offset && count * each <= span.bytes;
}

static uint64_t offsets_of(uint32_t records, uint32_t per_block)
{
	return ((uint64_t)records + per_block - 1) / per_block + 1;
}

static bool parts_fit(const struct symbol_table *table)
{
	const uint32_t per_block = count_at(table, SYMBOL_COUNT_TEXTS_PER_BLOCK);
	const uint32_t divisor = per_block ? per_block : 1;
	const struct {
		enum symbol_part part;
		uint64_t count, each;
	} parts[] = {
		{ SYMBOL_PART_ROWS, 0, 0 },
		{ SYMBOL_PART_BUILD_ID, 0, 0 },
		{ SYMBOL_PART_NOTE, 0, 0 },
		{ SYMBOL_PART_SEGMENTS, count_at(table, SYMBOL_COUNT_SEGMENTS),
		  SYMBOL_SEGMENT_BYTES },
		{ SYMBOL_PART_SOURCES, count_at(table, SYMBOL_COUNT_SOURCES), SYMBOL_SOURCE_BYTES },
		{ SYMBOL_PART_REGIONS, count_at(table, SYMBOL_COUNT_REGIONS), SYMBOL_REGION_BYTES },
		{ SYMBOL_PART_STARTS, count_at(table, SYMBOL_COUNT_BLOCKS) + 1ull,
		  SYMBOL_START_BYTES },
		{ SYMBOL_PART_SCOPES,
		  offsets_of(count_at(table, SYMBOL_COUNT_SCOPES), SYMBOL_PACK_RECORDS), 4 },
		{ SYMBOL_PART_FUNCTIONS,
		  offsets_of(count_at(table, SYMBOL_COUNT_FUNCTIONS), SYMBOL_PACK_RECORDS), 4 },
		{ SYMBOL_PART_TEXTS, offsets_of(count_at(table, SYMBOL_COUNT_TEXTS), divisor), 4 },
	};

	if (!per_block || per_block > SYMBOL_TEXTS_PER_BLOCK_MAX)
		return false;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!part_fits(table, parts[i].part, parts[i].count, parts[i].each))
			return false;
	return count_at(table, SYMBOL_COUNT_FUNCTIONS) <= SYMBOL_FUNCTIONS_MAX &&
	       count_at(table, SYMBOL_COUNT_SEGMENTS) <= ELF_SEGMENTS_MAX &&
	       count_at(table, SYMBOL_COUNT_SOURCES) <= SYMBOL_SOURCES_MAX &&
	       span_at(table, SYMBOL_PART_BUILD_ID).bytes < ELF_BUILD_ID_TEXT_BYTES;
}

static void read_info(struct symbol_table *table)
{
	struct elf_info *info = &table->info;
	struct symbol_span span = span_at(table, SYMBOL_PART_BUILD_ID);
	const uint8_t *at = table->bytes + span_at(table, SYMBOL_PART_SEGMENTS).offset;

	memcpy(info->build_id, table->bytes + span.offset, span.bytes);
	info->id_kind = table->bytes[SYMBOL_AT_ID_KIND];
	info->machine = symbol_u16(table->bytes + SYMBOL_AT_MACHINE);
	info->type = symbol_u16(table->bytes + SYMBOL_AT_TYPE);
	info->file_bytes = symbol_u64(table->bytes + SYMBOL_AT_BINARY_BYTES);
	info->segments_count = count_at(table, SYMBOL_COUNT_SEGMENTS);
	for (size_t i = 0; i < info->segments_count; i++, at += SYMBOL_SEGMENT_BYTES)
		info->segments[i] = (struct elf_segment){
			.offset = symbol_u64(at),
			.address = symbol_u64(at + 8),
			.file_bytes = symbol_u64(at + 16),
			.memory_bytes = symbol_u64(at + 24),
			.executable = at[32] & 1,
		};
}

static void read_sources(struct symbol_table *table)
{
	const uint8_t *at = table->bytes + span_at(table, SYMBOL_PART_SOURCES).offset;

	table->sources_count = count_at(table, SYMBOL_COUNT_SOURCES);
	for (uint32_t i = 0; i < table->sources_count; i++, at += SYMBOL_SOURCE_BYTES)
		table->sources[i] = (struct symbol_source){
			.bytes = symbol_u64(at),
			.kind = symbol_u32(at + 8),
		};
}

static struct symbol_records records_at(const struct symbol_table *table, enum symbol_part part,
					enum symbol_count count)
{
	return (struct symbol_records){ span_at(table, part), count_at(table, count) };
}

static void read_header(struct symbol_table *table)
{
	struct symbol_span note = span_at(table, SYMBOL_PART_NOTE);
	uint8_t origin = table->bytes[SYMBOL_AT_ORIGIN];

	read_info(table);
	read_sources(table);
	table->origin = origin < SYMBOL_ORIGINS ? origin : SYMBOL_ORIGIN_NONE;
	table->has_binary = table->bytes[SYMBOL_AT_HAS_BINARY] & 1;
	table->maker = symbol_u32(table->bytes + SYMBOL_AT_MAKER);
	table->tries = table->bytes[SYMBOL_AT_TRIES];
	table->debug_bytes = symbol_u64(table->bytes + SYMBOL_AT_DEBUG_BYTES);
	table->note = mem_strndup((const char *)table->bytes + note.offset, note.bytes);
	table->regions_count = count_at(table, SYMBOL_COUNT_REGIONS);
	table->blocks_count = count_at(table, SYMBOL_COUNT_BLOCKS);
	table->files_count = count_at(table, SYMBOL_COUNT_FILES);
	table->texts_count = count_at(table, SYMBOL_COUNT_TEXTS);
	table->regions = span_at(table, SYMBOL_PART_REGIONS);
	table->starts = span_at(table, SYMBOL_PART_STARTS);
	table->rows = span_at(table, SYMBOL_PART_ROWS);
	table->text_blocks = span_at(table, SYMBOL_PART_TEXTS);
	table->texts_per_block = count_at(table, SYMBOL_COUNT_TEXTS_PER_BLOCK);
	table->scopes = records_at(table, SYMBOL_PART_SCOPES, SYMBOL_COUNT_SCOPES);
	table->functions = records_at(table, SYMBOL_PART_FUNCTIONS, SYMBOL_COUNT_FUNCTIONS);
}

static int map_file(struct symbol_table *table, int fd, const char *name, struct err *err)
{
	struct stat st;
	void *bytes;

	if (fstat(fd, &st))
		return err_set_errno(err, errno, "open symbol table \"%s\"", name);
	if (!S_ISREG(st.st_mode) || st.st_size < SYMBOL_HEADER_BYTES + SYMBOL_SLACK_BYTES ||
	    (uint64_t)st.st_size > TABLE_BYTES_MAX)
		return corrupt(name, "it is no symbol table", err);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return err_set_errno(err, errno, "map symbol table \"%s\"", name);
	table->bytes = bytes;
	table->len = (size_t)st.st_size;
	return 0;
}

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

/* Where functions are declared, as far as the file tells: each look-up needs it of each frame. */
static void read_declared(struct symbol_table *table)
{
	struct open_pack open = { .block = SYMBOL_NONE };

	table->declared = mem_new_array(struct symbol_place, table->functions.count);
	for (uint32_t i = 0; i < table->functions.count; i++) {
		unsigned record = i % SYMBOL_PACK_RECORDS;
		bool is_patch;

		if (!open_record(table, &table->functions, i, FUNCTION_FIELDS, &open))
			return;
		table->declared[i] = (struct symbol_place){
			.file = symbol_pack_get(&open.pack, FUNCTION_FILE, record, &is_patch),
			.line = symbol_pack_get(&open.pack, FUNCTION_LINE, record, &is_patch),
		};
	}
}

static struct symbol_place declared_at(const struct symbol_table *table, uint32_t function)
{
	return function < table->functions.count ? table->declared[function]
						 : (struct symbol_place){ 0 };
}

static uint32_t start_of(const struct symbol_table *table, uint32_t block)
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

int symbol_table_open(int fd, const char *name, struct symbol_table **ret, struct err *err)
{
	struct symbol_table *table = mem_new(struct symbol_table);
	int status = map_file(table, fd, name, err);

	if (!status)
		status = check_sums(table, name, err);
	if (!status && !parts_fit(table))
		status = corrupt(name, "its parts do not fit", err);
	if (status) {
		symbol_table_free(table);
		return status;
	}
	read_header(table);
	read_declared(table);
	index_starts(table);
	*ret = table;
	return 0;
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

/* Begins to load a block of rows. */
static void prefetch_block(const struct symbol_table *table, uint32_t number)
{
	const uint8_t *start =
		table->bytes + table->starts.offset + (uint64_t)number * SYMBOL_START_BYTES;
	uint32_t at = symbol_u32(start + 4), end = symbol_u32(start + SYMBOL_START_BYTES + 4);

	if (end <= table->rows.bytes && at <= end)
		prefetch(table->bytes + table->rows.offset + at, end - at);
}

static bool open_block(const struct symbol_table *table, uint32_t number, struct symbol_pack *ret)
{
	const uint8_t *start =
		table->bytes + table->starts.offset + (uint64_t)number * SYMBOL_START_BYTES;
	uint32_t at = symbol_u32(start + 4), end = symbol_u32(start + SYMBOL_START_BYTES + 4);

	if (end > table->rows.bytes || at > end)
		return false;
	prefetch(table->bytes + table->rows.offset + at, end - at);
	return symbol_pack_open(table->bytes + table->rows.offset + at, end - at, ROW_FIELDS, ret);
}

/* The last row at or below `wanted` bytes from the block's start, which is where the first is. */
static unsigned find_row(const struct symbol_pack *rows, uint64_t wanted)
{
	const struct symbol_pack_field *steps = &rows->fields[ROW_STEP];
	const uint64_t mask = (1ull << steps->width) - 1;
	const uint64_t escape = steps->patches ? mask : UINT64_MAX;
	uint64_t at = 0, bit = steps->at;
	unsigned next;

	for (next = 1; next < rows->count; next++) {
		uint64_t step;
		uint32_t patch;

		bit += steps->width;
		step = symbol_u64(rows->bits + bit / 8) >> bit % 8 & mask;
		if (step == escape && symbol_pack_patch(rows, steps, next, &patch))
			at += patch;
		else
			at += steps->base + step;
		if (at > wanted)
			break;
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

/* A frame that is known but for the declaration of its function. */
struct link {
	uint32_t function;
	struct told_place place;
};

/* The functions of a scope and of those around it, innermost first. */
static size_t read_chain(const struct symbol_table *table, uint32_t scope, struct told_place place,
			 struct link ret[SYMBOL_CHAIN_MAX])
{
	struct open_pack open;
	size_t count = 0;

	open.block = SYMBOL_NONE; /* clearing all of it would take longer than the rest */
	open.pack.count = 0;
	for (;;) {
		unsigned record = scope % SYMBOL_PACK_RECORDS;
		uint32_t function, step;
		bool is_patch;

		if (!open_record(table, &table->scopes, scope, SCOPE_FIELDS, &open))
			return 0;
		function = symbol_pack_get(&open.pack, SCOPE_FUNCTION, record, &is_patch);
		if (function < table->functions.count)
			__builtin_prefetch(&table->declared[function]);
		ret[count++] = (struct link){ function, place };
		step = symbol_pack_get(&open.pack, SCOPE_PARENT_STEP, record, &is_patch);
		if (!step || step > scope || count == SYMBOL_CHAIN_MAX)
			return count;
		place = read_place(&open.pack, record, SCOPE_LINE, SCOPE_FILE);
		scope -= step;
	}
}

/* What a row says. */
struct told_row {
	uint32_t scope; /* its number + 1; 0: none */
	struct told_place place;
};

/* The row of an address `behind` the start of a block; false when the block is damaged. */
static bool read_row(const struct symbol_table *table, uint32_t block, uint64_t behind,
		     struct told_row *ret)
{
	struct symbol_pack rows;
	unsigned row;
	bool is_patch;

	if (!open_block(table, block, &rows))
		return false;
	row = find_row(&rows, behind);
	ret->scope = symbol_pack_get(&rows, ROW_SCOPE, row, &is_patch);
	ret->place = read_place(&rows, row, ROW_LINE, ROW_FILE);
	return true;
}

static size_t read_frames(const struct symbol_table *table, const struct told_row *row,
			  struct symbol_frame ret_frames[SYMBOL_CHAIN_MAX])
{
	struct link links[SYMBOL_CHAIN_MAX];
	size_t count;

	if (!row->scope && row->place.line) {
		ret_frames[0] =
			(struct symbol_frame){ SYMBOL_NONE, row->place.file, row->place.line };
		return 1;
	}
	count = row->scope ? read_chain(table, row->scope - 1, row->place, links) : 0;
	for (size_t i = 0; i < count; i++) {
		struct symbol_place declared = declared_at(table, links[i].function);
		struct told_place place = links[i].place;

		ret_frames[i] = (struct symbol_frame){
			.function = links[i].function,
			.file = place.file ? place.file : declared.file,
			.line = place.is_line ? place.line : place.line + declared.line,
		};
	}
	return count;
}

size_t symbol_table_lookup(const struct symbol_table *table, uint64_t address,
			   struct symbol_frame ret_frames[SYMBOL_CHAIN_MAX])
{
	struct place place;
	struct told_row row;
	uint64_t behind;
	uint32_t block;

	if (!find_region(table, address, &place))
		return 0;
	narrow(table, &place);
	if (!find_block(table, &place, &block, &behind) || !read_row(table, block, behind, &row))
		return 0;
	return read_frames(table, &row, ret_frames);
}

/* One of the addresses that are looked up together. */
struct lookup {
	struct place place;
	uint64_t behind;
	uint32_t block;
	bool is_found, has_scope;
	struct told_row row;
};

/* Finds the blocks of rows. Each step begins to load what the next one reads. */
static void find_blocks(const struct symbol_table *table, const uint64_t *addresses, size_t count,
			struct lookup *lookups)
{
	const uint8_t *starts = table->bytes + table->starts.offset;

	for (size_t i = 0; i < count; i++) {
		struct lookup *lookup = &lookups[i];

		lookup->is_found = find_region(table, addresses[i], &lookup->place);
		if (lookup->is_found && table->slices)
			__builtin_prefetch(&table->slices[slice_of_place(table, &lookup->place)]);
	}
	for (size_t i = 0; i < count; i++) {
		if (!lookups[i].is_found)
			continue;
		narrow(table, &lookups[i].place);
		__builtin_prefetch(starts + (uint64_t)lookups[i].place.first * SYMBOL_START_BYTES);
	}
	for (size_t i = 0; i < count; i++) {
		struct lookup *lookup = &lookups[i];

		lookup->is_found = lookup->is_found && find_block(table, &lookup->place,
								  &lookup->block, &lookup->behind);
		if (lookup->is_found)
			prefetch_block(table, lookup->block);
	}
}

/* Reads the rows, and begins to load the innermost scopes: callers mostly are beside them. */
static void read_rows(const struct symbol_table *table, size_t count, struct lookup *lookups)
{
	const uint8_t *offsets = table->bytes + table->scopes.span.offset;

	for (size_t i = 0; i < count; i++) {
		struct lookup *lookup = &lookups[i];

		lookup->is_found = lookup->is_found &&
				   read_row(table, lookup->block, lookup->behind, &lookup->row);
		lookup->has_scope = lookup->is_found && lookup->row.scope &&
				    lookup->row.scope <= table->scopes.count;
		if (lookup->has_scope)
			__builtin_prefetch(offsets + 4 * (size_t)((lookup->row.scope - 1) /
								  SYMBOL_PACK_RECORDS));
	}
	for (size_t i = 0; i < count; i++) {
		const uint8_t *bytes = NULL;
		uint64_t len;

		if (lookups[i].has_scope)
			bytes = block_of(table, &table->scopes, lookups[i].row.scope - 1, &len);
		if (bytes)
			prefetch(bytes, len);
	}
}

void symbol_table_lookup_many(const struct symbol_table *table, const uint64_t *addresses,
			      size_t count, symbol_table_visit_f *visit, void *context)
{
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	struct lookup lookups[TOGETHER_MAX];

	for (size_t at = 0; at < count; at += TOGETHER_MAX) {
		size_t some = count - at < TOGETHER_MAX ? count - at : TOGETHER_MAX;

		find_blocks(table, addresses + at, some, lookups);
		read_rows(table, some, lookups);
		for (size_t i = 0; i < some; i++) {
			size_t found = 0;

			if (lookups[i].is_found)
				found = read_frames(table, &lookups[i].row, frames);
			visit(context, addresses[at + i], frames, found);
		}
	}
}

struct symbol_function symbol_table_function(const struct symbol_table *table, uint32_t function)
{
	struct symbol_place declared;
	uint64_t texts = table->files_count + (uint64_t)function * FUNCTION_TEXTS;

	if (function >= table->functions.count || texts + FUNCTION_TEXTS > table->texts_count)
		return (struct symbol_function){ 0 };
	declared = declared_at(table, function);
	return (struct symbol_function){ (uint32_t)texts + FUNCTION_NAME,
					 (uint32_t)texts + FUNCTION_LINKAGE_NAME, declared.file,
					 declared.line };
}

struct symbol_table_stats symbol_table_stats(const struct symbol_table *table)
{
	return (struct symbol_table_stats){
		.row_bytes = table->rows.bytes + table->starts.bytes,
		.scope_bytes = table->scopes.span.bytes,
		.function_bytes = table->functions.span.bytes,
		.text_bytes = table->text_blocks.bytes,
		.blocks = table->blocks_count,
		.scopes = table->scopes.count,
		.functions = table->functions.count,
		.texts = table->texts_count,
	};
}
