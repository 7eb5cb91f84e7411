/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over a file and over memory: any order, any end, and a file that shrinks. */
#include "codec/elf/section_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define FILE_BYTES 50000u
#define SECTION_AT 1000u
#define SECTION_BYTES 40000u

static uint8_t byte_at(uint64_t file_offset)
{
	return (uint8_t)(file_offset * 2654435761u >> 13);
}

static FILE *file_new(void)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	for (unsigned i = 0; i < FILE_BYTES; i++)
		fputc(byte_at(i), file);
	fflush(file);
	return file;
}

static void assert_bytes(struct section_reader *reader, uint64_t offset, size_t len)
{
	const uint8_t *bytes;
	struct err err;

	assert_int_equal(section_reader_view(reader, offset, len, &bytes, &err), 0);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], byte_at(SECTION_AT + offset + i));
}

static void section_reader_gives_the_same_bytes_in_any_order(void **state)
{
	static struct section_reader reader;
	FILE *file = file_new();
	uint32_t random = 1;

	(void)state;
	section_reader_open_file(&reader, fileno(file), SECTION_AT, SECTION_BYTES, 0x400000, "f");
	for (uint64_t offset = 0; offset < SECTION_BYTES; offset += 100)
		assert_bytes(&reader, offset, 100);
	for (int i = 0; i < 2000; i++) {
		random = random * 1103515245 + 12345;
		size_t len = (random >> 8) % (SECTION_READER_WINDOW_BYTES + 1);

		random = random * 1103515245 + 12345;
		assert_bytes(&reader, (random >> 8) % (SECTION_BYTES - len + 1), len);
	}
	fclose(file);
}

static void section_reader_stops_where_section_or_file_ends(void **state)
{
	static struct section_reader reader;
	FILE *file = file_new();
	const uint8_t *bytes = NULL;
	size_t len = 99;
	struct err err;

	(void)state;
	section_reader_open_file(&reader, fileno(file), SECTION_AT, SECTION_BYTES, 0, "f");
	assert_bytes(&reader, SECTION_BYTES - 8, 8);
	assert_int_equal(section_reader_view(&reader, SECTION_BYTES - 7, 8, &bytes, &err),
			 -ERR_INVALID);
	assert_int_equal(section_reader_view(&reader, UINT64_MAX, 8, &bytes, &err), -ERR_INVALID);
	assert_int_equal(
		section_reader_view_some(&reader, SECTION_BYTES - 7, 8, &bytes, &len, &err), 0);
	assert_int_equal(len, 7);
	/* The section claims more than the file has. */
	section_reader_open_file(&reader, fileno(file), SECTION_AT, UINT64_MAX, 0, "f");
	assert_bytes(&reader, FILE_BYTES - SECTION_AT - 8, 8);
	assert_int_equal(section_reader_view(&reader, FILE_BYTES - SECTION_AT - 7, 8, &bytes, &err),
			 -ERR_INVALID);
	assert_int_equal(section_reader_view(&reader, (uint64_t)1 << 40, 8, &bytes, &err),
			 -ERR_INVALID);
	section_reader_open_file(&reader, fileno(file), UINT64_MAX - 5, 100, 0, "f");
	assert_int_equal(section_reader_view(&reader, 0, 1, &bytes, &err), -ERR_INVALID);
	fclose(file);
}

static void section_reader_fails_on_a_file_truncated_under_it(void **state)
{
	static struct section_reader reader;
	FILE *file = file_new();
	const uint8_t *bytes;
	struct err err;

	(void)state;
	section_reader_open_file(&reader, fileno(file), SECTION_AT, SECTION_BYTES, 0, "f");
	assert_bytes(&reader, 0, 10);
	assert_int_equal(ftruncate(fileno(file), 2000), 0);
	assert_int_equal(section_reader_view(&reader, 30000, 10, &bytes, &err), -ERR_INVALID);
	fclose(file);
}

static void section_reader_reads_memory_in_place(void **state)
{
	static struct section_reader reader;
	static const char text[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	const uint8_t *bytes;
	struct err err;

	(void)state;
	section_reader_open_memory(&reader, slice_from(text, 8), 0x1000, "memory");
	assert_int_equal(section_reader_view(&reader, 0, 8, &bytes, &err), 0);
	assert_ptr_equal(bytes, text);
	assert_int_equal(section_u16(bytes), 0x0201);
	assert_int_equal(section_u32(bytes), 0x04030201);
	assert_true(section_u64(bytes) == 0x0807060504030201u);
	assert_int_equal(section_reader_view(&reader, 1, 8, &bytes, &err), -ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(section_reader_gives_the_same_bytes_in_any_order),
		cmocka_unit_test(section_reader_stops_where_section_or_file_ends),
		cmocka_unit_test(section_reader_fails_on_a_file_truncated_under_it),
		cmocka_unit_test(section_reader_reads_memory_in_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
