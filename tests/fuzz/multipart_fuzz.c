/* SPDX-License-Identifier: Apache-2.0 */
/* The first line is the content type, the rest the body: parts lie within it, one behind another.
 */
#include <stdlib.h>

#include "codec/wire/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice body, type = slice_cut(slice_from(data, size), '\n', &body);
	struct multipart_reader reader;
	struct multipart_part part;
	const char *last = body.data;
	struct err err;

	if (!multipart_is(type) || multipart_begin(&reader, type, body, &err))
		return 0;
	while (multipart_next(&reader, &part, &err) > 0) {
		if (part.bytes.len &&
		    (part.bytes.data < last ||
		     part.bytes.len > (size_t)(body.data + body.len - part.bytes.data)))
			abort();
		if (part.bytes.len)
			last = part.bytes.data + part.bytes.len;
	}
	return 0;
}
