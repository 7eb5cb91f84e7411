/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_read: any bytes are columns whose every value can be looked at, or an error; memory is
 * bounded. */
#include <assert.h>

#include "codec/wire/arrow_read.h"

#define MEMORY_MAX ((size_t)1 << 20)
#define LOOKS_MAX 20000u /* values that are looked at: lists may share their items */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void look(const struct arrow_array *array, int64_t row, unsigned *looks);

static void look_at_bytes(struct slice bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		sink += (unsigned char)bytes.data[i];
}

static void look_at_items(const struct arrow_array *array, int64_t row, unsigned *looks)
{
	int64_t first, count;
	const struct arrow_array *items = arrow_items(array, row, &first, &count);

	assert(!items || (first >= 0 && count >= 0 && first + count <= arrow_length(items)));
	for (int64_t i = 0; items && i < count && *looks; i++)
		look(items, first + i, looks);
}

static void look_at_fields(const struct arrow_array *array, int64_t row, unsigned *looks)
{
	int64_t at;
	const struct arrow_array *of = arrow_struct(array, row, &at);

	for (size_t i = 0; of && i < arrow_fields(of) && *looks; i++) {
		look_at_bytes(arrow_field_name(of, i));
		look(arrow_field(of, i), at, looks);
	}
}

static void look(const struct arrow_array *array, int64_t row, unsigned *looks)
{
	assert(row >= 0 && row < arrow_length(array));
	--*looks;
	sink += arrow_is_null(array, row) + (uint64_t)arrow_number(array, row);
	look_at_bytes(arrow_bytes(array, row));
	look_at_items(array, row, looks);
	look_at_fields(array, row, looks);
}

static void look_at_stream(const struct arrow_stream *stream)
{
	unsigned looks = LOOKS_MAX;

	look_at_bytes(arrow_metadata(stream, "parca_write_schema_version"));
	for (size_t i = 0; i < stream->columns; i++)
		look_at_bytes(arrow_column_name(stream, i));
	for (size_t i = 0; i < stream->batches_count; i++)
		for (size_t k = 0; k < stream->columns; k++)
			for (int64_t row = 0; row < stream->batches[i].rows && looks; row++)
				look(stream->batches[i].columns[k], row, &looks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arrow_stream stream;
	struct err err = { 0 };

	if (!arrow_read(slice_from(data, size), MEMORY_MAX, &stream, &err)) {
		assert(stream.consumed <= size);
		look_at_stream(&stream);
	} else {
		assert(err.code && err.message[0]);
	}
	assert(stream.arena.used_bytes <= MEMORY_MAX);
	arrow_stream_free(&stream);
	return 0;
}
