/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests - a file of requests for the server, as the store's benchmarks make, keep and send them.
 *
 * A run of: bytes of the body (u64), rows in it (u64, 0 = not known), the body; native byte order.
 */
#ifndef FIRN_BENCH_REQUESTS_H
#define FIRN_BENCH_REQUESTS_H

#include <stdio.h>

#include "base/slice.h"
#include "base/strbuf.h"

#define REQUESTS_BODY_BYTES_MAX ((uint64_t)256 << 20)

struct requests_item {
	struct slice body;
	uint64_t rows;
};

static inline void requests_write(FILE *file, const struct requests_item *item)
{
	const uint64_t header[2] = { item->body.len, item->rows };

	fwrite(header, sizeof(header), 1, file);
	fwrite(item->body.data, 1, item->body.len, file);
}

/* False at the end. The body stands in `buffer` until the next call. */
static inline bool requests_read(FILE *file, struct strbuf *buffer, struct requests_item *ret)
{
	uint64_t header[2];
	char block[65536];

	strbuf_clear(buffer);
	if (fread(header, sizeof(header), 1, file) != 1 || header[0] > REQUESTS_BODY_BYTES_MAX)
		return false;
	while (buffer->len < header[0]) {
		size_t want = header[0] - buffer->len;
		size_t got = fread(block, 1, want < sizeof(block) ? want : sizeof(block), file);

		if (!got)
			return false; /* cut short */
		strbuf_add(buffer, block, got);
	}
	*ret = (struct requests_item){ strbuf_slice(buffer), header[1] };
	return true;
}

#endif
