/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/table/symbol_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/resolve/table/symbol_format.h"
#include "server/resolve/table/symbol_lookup.h"

#define TABLE_BYTES_MAX ((uint64_t)8 << 30)

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
	symbol_lookup_free(table);
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
		return corrupt(name, "it is not a symbol table", err);
	if (symbol_u32(bytes + SYMBOL_AT_VERSION) != SYMBOL_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			       "open symbol table \"%s\": version %" PRIu32 ", expected %d", name,
			       symbol_u32(bytes + SYMBOL_AT_VERSION), SYMBOL_VERSION);
	if (hash_crc32c(0, bytes + SYMBOL_AT_BODY_CRC, SYMBOL_HEADER_BYTES - SYMBOL_AT_BODY_CRC) !=
	    symbol_u32(bytes + SYMBOL_AT_HEADER_CRC))
		return corrupt(name, "wrong checksum of the header", err);
	if (symbol_u64(bytes + SYMBOL_AT_BODY_BYTES) != table->len - SYMBOL_HEADER_BYTES)
		return corrupt(name, "it is truncated", err);
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
	       count_at(table, SYMBOL_COUNT_UNNAMED) <= count_at(table, SYMBOL_COUNT_FUNCTIONS) &&
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
	table->named_count = table->functions.count - count_at(table, SYMBOL_COUNT_UNNAMED);
}

static int map_file(struct symbol_table *table, int fd, const char *name, struct err *err)
{
	struct stat st;
	void *bytes;

	if (fstat(fd, &st))
		return err_set_errno(err, errno, "open symbol table \"%s\"", name);
	if (!S_ISREG(st.st_mode) || st.st_size < SYMBOL_HEADER_BYTES + SYMBOL_SLACK_BYTES ||
	    (uint64_t)st.st_size > TABLE_BYTES_MAX)
		return corrupt(name, "it is not a symbol table", err);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return err_set_errno(err, errno, "map symbol table \"%s\"", name);
	table->bytes = bytes;
	table->len = (size_t)st.st_size;
	return 0;
}

void symbol_table_rest(const struct symbol_table *table)
{
	madvise((void *)(uintptr_t)table->bytes, table->len, MADV_DONTNEED);
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
	symbol_table_rest(table); /* the sums read all of it; look-ups need little */
	read_header(table);
	symbol_lookup_prepare(table);
	*ret = table;
	return 0;
}

struct symbol_function symbol_table_function(const struct symbol_table *table, uint32_t function)
{
	struct symbol_place declared;
	uint64_t texts = table->files_count + (uint64_t)function * FUNCTION_TEXTS;

	if (function >= table->functions.count || texts + FUNCTION_TEXTS > table->texts_count)
		return (struct symbol_function){ 0 };
	declared = symbol_lookup_declared(table, function);
	return (struct symbol_function){ (uint32_t)texts + FUNCTION_NAME,
					 (uint32_t)texts + FUNCTION_LINKAGE_NAME, declared.file,
					 declared.line, symbol_table_is_unnamed(table, function) };
}

bool symbol_table_is_unnamed(const struct symbol_table *table, uint32_t function)
{
	return function >= table->named_count && function < table->functions.count;
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
		.unnamed = table->functions.count - table->named_count,
		.texts = table->texts_count,
	};
}
