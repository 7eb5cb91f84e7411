/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/api/unchanged.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

#define ETAG_BYTES 64
#define BOUNDS_WITHIN_BYTES ((size_t)4096) /* the bounds stand at the beginning of every form */

/* Past the digits after the next of the bounds in `text`, which is hashed up to these; or 0. */
static size_t hash_to_bound(struct slice text, uint64_t *hash)
{
	static const char *const bounds[] = { "\"from_ms\":", "\"to_ms\":" };
	const char *least = NULL;
	size_t end;

	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		const char *at = memmem(text.data, text.len, bounds[i], strlen(bounds[i]));

		if (at && (!least || at < least))
			least = at + strlen(bounds[i]);
	}
	if (!least)
		return 0;
	end = (size_t)(least - text.data);
	*hash ^= hash_bytes(text.data, end) + (*hash << 6) + (*hash >> 2);
	while (end < text.len && text.data[end] >= '0' && text.data[end] <= '9')
		end++;
	return end;
}

static uint64_t hash_of(struct slice body)
{
	struct slice head = slice_from(
		body.data, body.len < BOUNDS_WITHIN_BYTES ? body.len : BOUNDS_WITHIN_BYTES);
	uint64_t hash = 0;
	size_t done = 0, step;

	while ((step = hash_to_bound(slice_tail(head, done), &hash)))
		done += step;
	assert(done <= body.len);
	return hash ^ (hash_bytes(body.data + done, body.len - done) + (hash << 6) + (hash >> 2));
}

void unchanged_check(const struct net_request *request, struct net_response *response)
{
	char etag[ETAG_BYTES];

	if (response->status != 200 || response->static_body.data || !response->body.len)
		return;
	snprintf(etag, sizeof(etag), "W/\"%zx-%016" PRIx64 "\"", response->body.len,
		 hash_of(strbuf_slice(&response->body)));
	strbuf_addf(&response->headers, "etag: %s\r\n", etag);
	if (!slice_is(net_request_header(request, "if-none-match"), etag))
		return;
	response->status = 304;
	strbuf_clear(&response->body);
}
