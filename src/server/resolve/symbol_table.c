/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/symbol_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/resolve/symbol_format.h"

#define TABLE_BYTES_MAX ((uint64_t)8 << 30)

/* A block of rows, its header read. */
struct row_block {
	const uint8_t *bits;
	uint32_t scope_base;
	unsigned rows, files;
	unsigned address_width, scope_width, file_width, line_width, column_width;
	unsigned path_width, base_width; /* of the block's list of files */
	unsigned row_width;
	uint64_t rows_at; /* bit of the first row */
};

/* What holds from one row's address on. */
struct row {
	uint32_t scope; /* SYMBOL_NONE: none */
	uint32_t file, line, column;
};

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
	free(table->note);
	free(table);
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
		{ SYMBOL_PART_SCOPES, 1, SYMBOL_RECORDS_HEADER_BYTES },
		{ SYMBOL_PART_CALLS, 1, SYMBOL_RECORDS_HEADER_BYTES },
		{ SYMBOL_PART_FUNCTIONS, 1, SYMBOL_RECORDS_HEADER_BYTES },
		{ SYMBOL_PART_TEXTS,
		  offsets_of(count_at(table, SYMBOL_COUNT_TEXTS), SYMBOL_TEXTS_PER_BLOCK), 4 },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!part_fits(table, parts[i].part, parts[i].count, parts[i].each))
			return false;
	return count_at(table, SYMBOL_COUNT_SEGMENTS) <= ELF_SEGMENTS_MAX &&
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

/* No records when they do not fit. */
static struct symbol_records records_at(const struct symbol_table *table, enum symbol_part part,
					enum symbol_count count, unsigned fields)
{
	struct symbol_records records = { span_at(table, part), .count = count_at(table, count) };
	const uint8_t *widths = table->bytes + records.span.offset;
	bool fits = true;

	for (unsigned i = 0; i < fields; i++) {
		fits &= widths[i] <= 32;
		records.widths[i] = widths[i];
		records.record_width += widths[i] & 63;
	}
	if (!fits || ((uint64_t)records.count * records.record_width + 7) / 8 >
			     records.span.bytes - SYMBOL_RECORDS_HEADER_BYTES)
		records.count = 0;
	return records;
}

static void read_header(struct symbol_table *table)
{
	struct symbol_span note = span_at(table, SYMBOL_PART_NOTE);
	uint8_t origin = table->bytes[SYMBOL_AT_ORIGIN];

	read_info(table);
	read_sources(table);
	table->origin = origin < SYMBOL_ORIGINS ? origin : SYMBOL_ORIGIN_NONE;
	table->has_binary = table->bytes[SYMBOL_AT_HAS_BINARY] & 1;
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
	table->scopes = records_at(table, SYMBOL_PART_SCOPES, SYMBOL_COUNT_SCOPES, SCOPE_FIELDS);
	table->calls = records_at(table, SYMBOL_PART_CALLS, SYMBOL_COUNT_CALLS, CALL_FIELDS);
	table->functions =
		records_at(table, SYMBOL_PART_FUNCTIONS, SYMBOL_COUNT_FUNCTIONS, FUNCTION_FIELDS);
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
	*ret = table;
	return 0;
}

/* Reads the fields of one record; false when there is no such record. */
static bool read_record(const struct symbol_table *table, const struct symbol_records *records,
			uint32_t index, unsigned fields, uint32_t ret[SYMBOL_RECORD_FIELDS_MAX])
{
	const uint8_t *bits = table->bytes + records->span.offset + SYMBOL_RECORDS_HEADER_BYTES;
	uint64_t bit = (uint64_t)index * records->record_width;

	if (index >= records->count)
		return false;
	for (unsigned i = 0; i < fields; i++) {
		ret[i] = symbol_bits(bits, bit, records->widths[i]);
		bit += records->widths[i];
	}
	return true;
}

/* The block that holds the address, by its number, and where it starts; false when none does. */
static bool find_block(const struct symbol_table *table, uint64_t address, uint32_t *ret_block,
		       uint64_t *ret_start)
{
	const uint8_t *regions = table->bytes + table->regions.offset;
	const uint8_t *starts = table->bytes + table->starts.offset;
	uint32_t region = table->regions_count, first, end, low;
	uint64_t base;

	while (region &&
	       symbol_u64(regions + (uint64_t)(region - 1) * SYMBOL_REGION_BYTES) > address)
		region--;
	if (!region--)
		return false;
	base = symbol_u64(regions + (uint64_t)region * SYMBOL_REGION_BYTES);
	first = symbol_u32(regions + (uint64_t)region * SYMBOL_REGION_BYTES + 8);
	end = region + 1 < table->regions_count
		      ? symbol_u32(regions + ((uint64_t)region + 1) * SYMBOL_REGION_BYTES + 8)
		      : table->blocks_count;
	if (first >= end || end > table->blocks_count)
		return false;
	low = address - base < UINT32_MAX ? (uint32_t)(address - base) : UINT32_MAX;
	for (uint32_t count = end - first; count > 1;) {
		uint32_t half = count / 2;

		if (symbol_u32(starts + (uint64_t)(first + half) * SYMBOL_START_BYTES) <= low)
			first += half;
		count -= half;
	}
	*ret_block = first;
	*ret_start = base + symbol_u32(starts + (uint64_t)first * SYMBOL_START_BYTES);
	return *ret_start <= address;
}

static unsigned bits_for(unsigned count)
{
	return count > 1 ? 32 - (unsigned)__builtin_clz(count - 1) : 0;
}

static bool open_block(const struct symbol_table *table, uint32_t number, struct row_block *ret)
{
	const uint8_t *start =
		table->bytes + table->starts.offset + (uint64_t)number * SYMBOL_START_BYTES;
	uint32_t at = symbol_u32(start + 4), end = symbol_u32(start + SYMBOL_START_BYTES + 4);
	const uint8_t *header = table->bytes + table->rows.offset + at;

	if (end > table->rows.bytes || at > end || end - at < SYMBOL_BLOCK_HEADER_BYTES)
		return false;
	*ret = (struct row_block){
		.bits = header + SYMBOL_BLOCK_HEADER_BYTES,
		.scope_base = symbol_u32(header),
		.rows = header[4],
		.files = header[5],
		.address_width = header[6],
		.scope_width = header[7],
		.file_width = bits_for(header[5]),
		.line_width = header[8],
		.column_width = header[9],
		.path_width = header[10],
		.base_width = header[11],
	};
	ret->row_width = ret->address_width + ret->scope_width + ret->file_width + ret->line_width +
			 ret->column_width;
	ret->rows_at = (uint64_t)ret->files * (ret->path_width + ret->base_width);
	return ret->rows && ret->files && ret->address_width <= 32 && ret->scope_width <= 32 &&
	       ret->line_width <= 32 && ret->column_width <= 32 && ret->path_width <= 32 &&
	       ret->base_width <= 32 &&
	       (ret->rows_at + (uint64_t)ret->rows * ret->row_width + 7) / 8 <=
		       end - at - SYMBOL_BLOCK_HEADER_BYTES;
}

/* The last row at or below `step` bytes from the block's start, which is where the first row is. */
static unsigned find_row(const struct row_block *block, uint32_t step)
{
	unsigned first = 0;

	for (unsigned count = block->rows; count > 1;) {
		unsigned half = count / 2;

		if (symbol_bits(block->bits,
				block->rows_at + (uint64_t)(first + half) * block->row_width,
				block->address_width) <= step)
			first += half;
		count -= half;
	}
	return first;
}

static struct row read_row(const struct row_block *block, unsigned number)
{
	uint64_t bit = block->rows_at + (uint64_t)number * block->row_width + block->address_width;
	uint64_t file_at = block->path_width + block->base_width;
	uint32_t scope = symbol_bits(block->bits, bit, block->scope_width);
	uint32_t file;
	struct row row;

	bit += block->scope_width;
	file = symbol_bits(block->bits, bit, block->file_width);
	file_at *= file < block->files ? file : 0;
	bit += block->file_width;
	row.scope = scope ? block->scope_base + scope - 1 : SYMBOL_NONE;
	row.file = symbol_bits(block->bits, file_at, block->path_width);
	row.line = symbol_bits(block->bits, file_at + block->path_width, block->base_width) +
		   symbol_bits(block->bits, bit, block->line_width);
	row.column = symbol_bits(block->bits, bit + block->line_width, block->column_width);
	return row;
}

/* Fills in what a frame lacks: where its function is declared. */
static void complete(const struct symbol_table *table, struct symbol_frame *frame)
{
	if (!frame->file)
		frame->file = symbol_table_function(table, frame->function).file;
}

/* Begins to load a record that will be read soon. */
static void prefetch_record(const struct symbol_table *table, const struct symbol_records *records,
			    uint32_t index)
{
	if (index < records->count)
		__builtin_prefetch(table->bytes + records->span.offset +
				   SYMBOL_RECORDS_HEADER_BYTES +
				   (uint64_t)index * records->record_width / 8);
}

/* The calls of a scope and of those around it, innermost first. */
static size_t read_chain(const struct symbol_table *table, uint32_t scope,
			 uint32_t ret_calls[SYMBOL_CHAIN_MAX])
{
	size_t count = 0;

	while (scope != SYMBOL_NONE && count < SYMBOL_CHAIN_MAX) {
		uint32_t record[SYMBOL_RECORD_FIELDS_MAX];

		if (!read_record(table, &table->scopes, scope, SCOPE_FIELDS, record))
			return 0;
		prefetch_record(table, &table->calls, record[SCOPE_CALL]);
		ret_calls[count++] = record[SCOPE_CALL];
		scope = record[SCOPE_PARENT_STEP] && record[SCOPE_PARENT_STEP] <= scope
				? scope - record[SCOPE_PARENT_STEP]
				: SYMBOL_NONE;
	}
	return count;
}

size_t symbol_table_lookup(const struct symbol_table *table, uint64_t address,
			   struct symbol_frame ret_frames[SYMBOL_CHAIN_MAX])
{
	uint32_t calls[SYMBOL_CHAIN_MAX], number;
	struct row_block block;
	uint64_t start;
	struct row row;
	size_t count;

	if (!find_block(table, address, &number, &start) || !open_block(table, number, &block))
		return 0;
	row = read_row(&block,
		       find_row(&block, address - start < UINT32_MAX ? (uint32_t)(address - start)
								     : UINT32_MAX));
	if (row.scope == SYMBOL_NONE && row.line) {
		ret_frames[0] =
			(struct symbol_frame){ SYMBOL_NONE, row.file, row.line, row.column };
		return 1;
	}
	count = read_chain(table, row.scope, calls);
	for (size_t i = 0; i < count; i++) {
		uint32_t call[SYMBOL_RECORD_FIELDS_MAX];

		if (!read_record(table, &table->calls, calls[i], CALL_FIELDS, call))
			return 0;
		ret_frames[i] = (struct symbol_frame){ call[CALL_FUNCTION], row.file, row.line,
						       row.column };
		complete(table, &ret_frames[i]);
		row.file = call[CALL_FILE];
		row.line = call[CALL_LINE];
		row.column = call[CALL_COLUMN];
	}
	return count;
}

struct symbol_function symbol_table_function(const struct symbol_table *table, uint32_t function)
{
	uint32_t record[SYMBOL_RECORD_FIELDS_MAX];

	if (!read_record(table, &table->functions, function, FUNCTION_FIELDS, record))
		return (struct symbol_function){ 0 };
	return (struct symbol_function){ record[FUNCTION_NAME], record[FUNCTION_LINKAGE_NAME],
					 record[FUNCTION_FILE], record[FUNCTION_LINE] };
}

struct symbol_table_stats symbol_table_stats(const struct symbol_table *table)
{
	return (struct symbol_table_stats){
		.row_bytes = table->rows.bytes + table->starts.bytes,
		.scope_bytes = table->scopes.span.bytes,
		.call_bytes = table->calls.span.bytes,
		.function_bytes = table->functions.span.bytes,
		.text_bytes = table->text_blocks.bytes,
		.blocks = table->blocks_count,
		.scopes = table->scopes.count,
		.calls = table->calls.count,
		.functions = table->functions.count,
		.texts = table->texts_count,
	};
}
