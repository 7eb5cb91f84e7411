/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses the format; the rest is what a stranger sent. */
#include <stdlib.h>

#include "codec/archive/compress.h"

#define OUT_BYTES_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = slice_from(data + 1, size ? size - 1 : 0);
	struct strbuf out = { 0 };
	struct err err = { 0 };

	if (!size)
		return 0;
	if (data[0] % 4 == 0)
		(void)compress_gunzip(bytes, OUT_BYTES_MAX, &out, &err);
	else if (data[0] % 4 == 1)
		(void)compress_inflate(bytes, OUT_BYTES_MAX, &out, &err);
	else if (data[0] % 4 == 3)
		(void)compress_unxz(bytes, OUT_BYTES_MAX, &out, &err);
	else
		(void)compress_unzstd(bytes, OUT_BYTES_MAX, &out, &err);
	if (out.len > OUT_BYTES_MAX)
		abort();
	strbuf_free(&out);
	return 0;
}
