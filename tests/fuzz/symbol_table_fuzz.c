/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a symbol table's file, whose checksums are made right first: all that it leads to is
 * looked up. Seeds are tables of small programs.
 */
#include "server/resolve/table/symbol_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "server/resolve/table/symbol_format.h"
#include "server/resolve/table/symbol_texts.h"

#define SIZE_MAX_HERE ((size_t)1 << 20)
#define BLOCKS 64
#define TEXTS 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_u32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

/* Without this nothing but the checksums would be tested. */
static void make_sums_right(uint8_t *bytes, size_t size)
{
	uint64_t body = size - SYMBOL_HEADER_BYTES;

	put_u32(bytes + SYMBOL_AT_BODY_CRC,
		hash_crc32c(0, bytes + SYMBOL_HEADER_BYTES, (size_t)body));
	put_u32(bytes + SYMBOL_AT_BODY_BYTES, (uint32_t)body);
	put_u32(bytes + SYMBOL_AT_BODY_BYTES + 4, 0);
	put_u32(bytes + SYMBOL_AT_HEADER_CRC,
		hash_crc32c(0, bytes + SYMBOL_AT_BODY_CRC,
			    SYMBOL_HEADER_BYTES - SYMBOL_AT_BODY_CRC));
}

struct expected {
	const struct symbol_table *table;
	uint64_t addresses[BLOCKS];
	size_t answers;
};

/* Many at once are what each is alone. */
static void compare(void *context, size_t index, const struct symbol_frame *frames, size_t count)
{
	struct symbol_frame alone[SYMBOL_CHAIN_MAX];
	struct expected *expected = context;

	expected->answers++;
	if (symbol_lookup(expected->table, expected->addresses[index], alone) != count)
		abort();
	for (size_t i = 0; i < count; i++)
		if (frames[i].function != alone[i].function || frames[i].file != alone[i].file ||
		    frames[i].line != alone[i].line)
			abort();
}

/* Step by step, the same frames are found; a cut chain may go on. */
static void expect_chain(const struct symbol_table *table, uint32_t scope,
			 const struct symbol_frame *frames, size_t count)
{
	for (size_t i = 0; scope != SYMBOL_NONE && i < count; i++) {
		struct symbol_caller caller;

		if (!symbol_lookup_scope(table, scope, &caller) ||
		    caller.function != frames[i].function)
			abort();
		scope = caller.scope;
		if (i + 1 < count && (scope == SYMBOL_NONE || caller.line != frames[i + 1].line ||
				      caller.file != frames[i + 1].file))
			abort();
	}
}

static void look_up_together(const struct symbol_table *table, uint64_t start)
{
	struct expected expected = { .table = table };
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	struct symbol_location locations[BLOCKS];

	for (uint64_t i = 0; i < BLOCKS; i++)
		expected.addresses[i] = start + 7 * i;
	symbol_lookup_many(table, expected.addresses, BLOCKS - 1, compare, &expected);
	if (expected.answers != BLOCKS - 1)
		abort();
	symbol_lookup_locations(table, expected.addresses, BLOCKS - 1, locations);
	for (size_t i = 0; i < BLOCKS - 1; i++) {
		size_t count = symbol_lookup(table, expected.addresses[i], frames);

		if (count &&
		    (frames[0].line != locations[i].line || frames[0].file != locations[i].file))
			abort();
		expect_chain(table, locations[i].scope, frames, count);
	}
}

static void look_up(const struct symbol_table *table)
{
	struct symbol_texts *texts = symbol_texts_new(table);
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	const uint8_t *regions = table->bytes + table->regions.offset;
	const uint8_t *starts = table->bytes + table->starts.offset;

	symbol_texts_lookup(texts, 0, lines);
	symbol_texts_lookup(texts, UINT64_MAX, lines);
	for (uint32_t i = 0; i < table->blocks_count && i < BLOCKS && table->regions_count; i++) {
		uint64_t at =
			symbol_u64(regions) + symbol_u32(starts + (size_t)i * SYMBOL_START_BYTES);

		for (uint64_t k = 0; k < BLOCKS; k++)
			symbol_texts_lookup(texts, at + 3 * k, lines);
		if (!i)
			look_up_together(table, at - BLOCKS);
	}
	for (uint32_t i = 0; i < table->texts_count && i < TEXTS; i++)
		symbol_texts_get(texts, i);
	symbol_texts_free(texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct symbol_table *table;
	uint8_t *copy;

	if (fd < 0)
		fd = memfd_create("table", MFD_CLOEXEC);
	if (fd < 0 || size < SYMBOL_HEADER_BYTES || size > SIZE_MAX_HERE)
		return 0;
	copy = malloc(size);
	memcpy(copy, data, size);
	make_sums_right(copy, size);
	if (!ftruncate(fd, 0) && pwrite(fd, copy, size, 0) == (ssize_t)size &&
	    !symbol_table_open(fd, "input", &table, NULL)) {
		look_up(table);
		symbol_table_free(table);
	}
	free(copy);
	return 0;
}
