/* SPDX-License-Identifier: Apache-2.0 */
/* What processes say of themselves; the first byte says which of it the rest is. */
#include <stdlib.h>

#include "agent/identify/otel_context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct otel_context_header header;
	struct meta_labels labels = { 0 };
	struct slice rest;
	uint64_t start;

	if (!size)
		return 0;
	rest = slice_from(data + 1, size - 1);
	if (data[0] == 'v')
		otel_context_add_variable(rest, &labels);
	else if (data[0] == 'm')
		otel_context_is_mapping(rest, &start);
	else if (data[0] == 'h' && rest.len >= OTEL_CONTEXT_HEADER_BYTES)
		otel_context_header_parse((const uint8_t *)rest.data, &header);
	else
		otel_context_decode(rest, &labels, NULL);
	if (labels.count > META_LABELS_MAX || labels.text.len > META_LABELS_BYTES_MAX)
		abort();
	for (size_t i = 0; i < labels.count; i++)
		if (!slice_is_utf8(meta_labels_value(&labels, i)) ||
		    !slice_starts_with(meta_labels_name(&labels, i), SLICE_LITERAL(OTEL_META)))
			abort();
	meta_labels_free(&labels);
	return 0;
}
