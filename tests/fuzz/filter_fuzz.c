/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a list of filters or an error; what parses is spelled so that it parses the same. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "server/query/tree/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct filter_list filters = { 0 }, again = { 0 };
	struct strbuf once = { 0 }, twice = { 0 };
	struct err err;

	if (!filter_list_parse(&filters, slice_from((const char *)data, size), &err)) {
		filter_list_format(&once, &filters);
		if (once.len <= FILTER_BYTES_MAX) {
			assert(!filter_list_parse(&again, strbuf_slice(&once), &err));
			filter_list_format(&twice, &again);
			assert(slice_equal(strbuf_slice(&once), strbuf_slice(&twice)));
		}
	}
	filter_list_free(&filters);
	filter_list_free(&again);
	strbuf_free(&once);
	strbuf_free(&twice);
	return 0;
}
