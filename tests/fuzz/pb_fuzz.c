/* SPDX-License-Identifier: Apache-2.0 */
/* pb: the reader stays inside the bytes, and both ways of reading numbers agree. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/wire/pb.h"

static void compare_numbers(struct slice bytes)
{
	struct pb_reader one = pb_reader_of(bytes);
	uint64_t *numbers = mem_new_array(uint64_t, bytes.len + 1);
	bool whole;
	size_t count = pb_varints(bytes, numbers, &whole), i = 0;
	uint64_t number;

	for (; pb_varint(&one, &number); i++)
		assert(i < count && numbers[i] == number);
	assert(i == count && whole == !one.problem);
	free(numbers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = slice_from(data, size);
	struct pb_reader in = pb_reader_of(bytes);
	struct pb_field field;

	while (pb_next(&in, &field)) {
		assert(in.at > data && in.at <= data + size);
		if (field.wire == PB_BYTES) {
			assert((const uint8_t *)field.bytes.data >= data &&
			       field.bytes.len <= size);
			compare_numbers(field.bytes);
		}
	}
	assert(in.problem || in.at == in.end);
	compare_numbers(bytes);
	return 0;
}
