/* SPDX-License-Identifier: Apache-2.0 */
/* A selector that is understood is spelled so that it is understood again, and means the same. */
#include <stdlib.h>

#include "model/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const struct selector *a, const struct selector *b, struct slice text)
{
	if (a->has_type != b->has_type || a->matchers_count != b->matchers_count)
		abort();
	for (size_t i = 0; i < a->matchers_count; i++) {
		if (a->matchers[i].op != b->matchers[i].op ||
		    !slice_equal(a->matchers[i].name, b->matchers[i].name) ||
		    !slice_equal(a->matchers[i].value, b->matchers[i].value))
			abort();
		if (matcher_matches(&a->matchers[i], text) !=
		    matcher_matches(&b->matchers[i], text))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size);
	struct selector selector, again;
	struct strbuf spelled = { 0 };
	struct err err = { 0 };

	if (selector_parse(text, &selector, &err))
		return 0;
	selector_format(&spelled, &selector);
	if (spelled.len <= SELECTOR_BYTES_MAX) {
		if (selector_parse(strbuf_slice(&spelled), &again, &err))
			abort();
		compare(&selector, &again, text);
		selector_free(&again);
	}
	strbuf_free(&spelled);
	selector_free(&selector);
	return 0;
}
