/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof: what decodes also encodes, and what was encoded decodes to the same profile. Memory stays
 * in proportion to the input, whether that is taken or not.
 */
#include <assert.h>

#include "base/budget.h"
#include "codec/profile/pprof_check.h"

#define BYTES_PER_BYTE 96 /* an empty line takes two bytes on the wire, three quarters used */
#define BYTES_MIN 65536	  /* the smallest columns */

#define ELEMENTS_MAX 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pprof first, second; /* kept: stale columns must do no harm */
	struct budget budget = { .max_bytes = INT64_MAX };
	struct strbuf once = { 0 }, twice = { 0 };
	struct pprof fresh = { .budget = &budget };

	(void)pprof_decode(slice_from(data, size), ELEMENTS_MAX, &fresh, NULL);
	assert((size_t)budget.used_bytes <= BYTES_MIN + size * BYTES_PER_BYTE);
	pprof_free(&fresh);
	assert(!budget.used_bytes);
	if (!pprof_decode(slice_from(data, size), ELEMENTS_MAX, &first, NULL)) {
		struct err err;

		pprof_encode(&first, &once);
		assert(!pprof_decode(strbuf_slice(&once), ELEMENTS_MAX, &second, &err));
		assert(first.samples.count == second.samples.count);
		pprof_encode(&second, &twice);
		assert(slice_equal(strbuf_slice(&once), strbuf_slice(&twice)));
		assert(pprof_is_sound(&first) == pprof_is_sound(&second));
		if (pprof_is_sound(&first)) {
			pprof_keep_type(&first, first.sample_types.count - 1);
			assert(pprof_is_sound(&first));
		}
	}
	strbuf_free(&once);
	strbuf_free(&twice);
	return 0;
}
