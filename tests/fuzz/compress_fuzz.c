/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses the format; the rest is what a stranger sent. */
#include <stdlib.h>

#include "codec/archive/compress.h"
#include "codec/archive/frames.h"

#define OUT_BYTES_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int (*const formats[])(struct slice, size_t, struct strbuf *,
			      struct err *) = { compress_gunzip, compress_inflate, compress_unzstd,
						compress_unxz,	 frames_unsnappy,  frames_unlz4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = slice_from(data + 1, size ? size - 1 : 0);
	struct strbuf out = { 0 };
	struct err err = { 0 };

	if (!size)
		return 0;
	(void)formats[data[0] % (sizeof(formats) / sizeof(formats[0]))](bytes, OUT_BYTES_MAX, &out,
									 &err);
	if (out.len > OUT_BYTES_MAX)
		abort();
	strbuf_free(&out);
	return 0;
}
