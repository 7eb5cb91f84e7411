/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a request of Pyroscope's calls or an error. What is read lies in the message: the
 * request itself has a fixed size, so that memory does not grow with the input.
 */
#include <assert.h>
#include <stdint.h>

#include "server/serve/pyroscope/pyro_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct pyro_shape shape = {
	.name = "FuzzRequest",
	.type = 1,
	.selector = 2,
	.start = 3,
	.end = 4,
	.group_by = 5,
	.step = 6,
	.max_nodes = 7,
	.format = 8,
	.label = 9,
	.stack_selector = 10,
	.ids = { 11, 12, 13 },
	.exemplars = 14,
	.aggregation = 15,
	.limit = 16,
};

static void check(const struct slice *texts, size_t count, size_t max, struct slice bytes)
{
	assert(count <= max);
	for (size_t i = 0; i < count; i++)
		assert(!texts[i].len || (texts[i].data >= bytes.data &&
					 texts[i].data + texts[i].len <= bytes.data + bytes.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pyro_request request; /* large */
	struct slice bytes = slice_from(data, size);
	struct err err = { 0 };

	if (pyro_read(&shape, bytes, &request, &err)) {
		assert(err.message[0]);
		return 0;
	}
	check(&request.type, 1, 1, bytes);
	check(&request.label, 1, 1, bytes);
	check(request.selectors, request.selectors_count, PYRO_SELECTORS_MAX, bytes);
	check(request.group_by, request.group_by_count, QUERY_GROUP_BY_MAX, bytes);
	check(request.call_site, request.call_site_count, PYRO_CALL_SITE_MAX, bytes);
	for (int i = 0; i < PYRO_IDS; i++)
		check(request.ids[i], request.ids_count[i], PYRO_IDS_MAX, bytes);
	return 0;
}
