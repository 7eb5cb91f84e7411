/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a snapshot of labels, whose contexts have few labels each, or an error. */
#include <assert.h>
#include <stdlib.h>

#include "base/budget.h"
#include "codec/profile/jfr_labels.h"

#define CONTEXTS 32
#define LABELS_MAX 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct budget budget = { .max_bytes = INT64_MAX };
	struct jfr_labels *labels;
	struct slice name, value;
	struct err err = { 0 };

	if (jfr_labels_decode(slice_from(data, size), &budget, &labels, &err)) {
		if (!err.message[0])
			abort();
	} else {
		for (int64_t context = 0; context < CONTEXTS; context++) {
			size_t at = 0, count = 0;

			while (jfr_labels_next(labels, context, &at, &name, &value))
				if (++count > LABELS_MAX || name.len + value.len > 2 * size)
					abort();
		}
		jfr_labels_free(labels);
	}
	assert(!budget.used_bytes);
	return 0;
}
