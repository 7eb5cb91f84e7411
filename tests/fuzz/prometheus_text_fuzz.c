/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of an agent, as `firn doctor` reads them. */
#include <stdlib.h>

#include "codec/wire/prometheus_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size);
	struct prometheus_sample sample;
	struct strbuf value = { 0 };

	while (prometheus_next(&text, &sample)) {
		if (!sample.name.len || sample.labels.len > size)
			abort();
		if (prometheus_label(&sample, "end", &value) && value.len > sample.labels.len)
			abort();
	}
	if (text.len)
		abort();
	strbuf_free(&value);
	return 0;
}
