/* SPDX-License-Identifier: Apache-2.0 */
/* otlp: memory stays in proportion to the input, whether that is taken or not, and comes back. */
#include <assert.h>

#include "base/budget.h"
#include "codec/profile/otlp.h"

#define ELEMENTS_MAX 100000
#define BYTES_PER_BYTE 192 /* an empty profile takes two bytes on the wire, three quarters used */
#define BYTES_MIN 131072   /* the smallest columns */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct budget budget = { .max_bytes = INT64_MAX };
	struct otlp request = { .budget = &budget };

	(void)otlp_decode(slice_from(data, size), ELEMENTS_MAX, &request, NULL);
	assert((size_t)budget.used_bytes <= BYTES_MIN + size * BYTES_PER_BYTE);
	otlp_free(&request);
	assert(!budget.used_bytes);
	return 0;
}
