/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Archives, compressed or not, in pieces whose size the first byte decides. Every content must be
 * as long as its entry says.
 */
#include <assert.h>
#include <stdint.h>

#include "codec/archive/tar.h"
#include "codec/archive/unpack.h"

#define PLAIN_BYTES_MAX ((uint64_t)16 << 20)

struct seen {
	struct tar_reader tar;
	uint64_t left;
	size_t entries;
};

static int see_entry(void *context, const struct tar_entry *entry, bool *ret_wanted,
		     struct err *err)
{
	struct seen *seen = context;

	(void)err;
	assert(!seen->left);
	assert(entry->name.len <= TAR_NAME_BYTES_MAX);
	*ret_wanted = entry->is_file && ++seen->entries % 3;
	if (*ret_wanted)
		seen->left = entry->bytes;
	return 0;
}

static int see_content(void *context, struct slice bytes, uint64_t left, struct err *err)
{
	struct seen *seen = context;

	(void)err;
	assert(seen->left == bytes.len + left);
	seen->left = left;
	return 0;
}

static int add(void *context, struct slice plain, struct err *err)
{
	struct seen *seen = context;

	return tar_add(&seen->tar, plain, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen seen = { .left = 0 };
	const struct tar_sink sink = { see_entry, see_content, &seen };
	struct unpack *unpack = unpack_new(PLAIN_BYTES_MAX, add, &seen);
	struct slice rest = slice_tail(slice_from(data, size), 1);
	size_t piece_bytes = size && data[0] ? (size_t)data[0] * 7 : SIZE_MAX;
	struct err err;
	int rc = 0;

	tar_begin(&seen.tar, &sink);
	while (!rc && rest.len) {
		struct slice piece = rest;

		if (piece.len > piece_bytes)
			piece.len = piece_bytes;
		rc = unpack_add(unpack, piece, &err);
		rest = slice_tail(rest, piece.len);
	}
	if (!rc)
		rc = unpack_end(unpack, &err);
	if (!rc)
		rc = tar_end(&seen.tar, &err);
	assert(rc <= 0);
	tar_free(&seen.tar);
	unpack_free(unpack);
	return 0;
}
