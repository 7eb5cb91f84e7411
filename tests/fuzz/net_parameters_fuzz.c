/* SPDX-License-Identifier: Apache-2.0 */
/* Any query string is pairs or an error; a parameter is found by its name as the pairs have it. */
#include <stdint.h>
#include <stdlib.h>

#include "net/server.h"

#define NAME "query"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct net_request request = { .query = slice_from(data, size) };
	struct slice rest = request.query;
	struct strbuf name = { 0 }, value = { 0 }, found = { 0 };
	size_t n = 0, left = size + 1;

	while (net_parameter_next(&rest, &name, &value) > 0) {
		if (name.len + value.len > size || rest.len >= left)
			abort();
		left = rest.len;
		if (!slice_is(strbuf_slice(&name), NAME))
			continue;
		if (!net_request_parameter(&request, NAME, n++, &found) ||
		    !slice_equal(strbuf_slice(&found), strbuf_slice(&value)))
			abort();
		if (n == 32) /* each looks from the front on */
			break;
	}
	strbuf_free(&name);
	strbuf_free(&value);
	strbuf_free(&found);
	return 0;
}
