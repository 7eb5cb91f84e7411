/* SPDX-License-Identifier: Apache-2.0 */
/* pprof: what decodes also encodes, and what was encoded decodes to the same profile. */
#include <assert.h>

#include "codec/profile/pprof.h"

#define ELEMENTS_MAX 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pprof first, second; /* kept: stale columns must do no harm */
	struct strbuf once = { 0 }, twice = { 0 };

	if (!pprof_decode(slice_from(data, size), ELEMENTS_MAX, &first, NULL)) {
		struct err err;

		pprof_encode(&first, &once);
		assert(!pprof_decode(strbuf_slice(&once), ELEMENTS_MAX, &second, &err));
		assert(first.samples.count == second.samples.count);
		pprof_encode(&second, &twice);
		assert(slice_equal(strbuf_slice(&once), strbuf_slice(&twice)));
	}
	strbuf_free(&once);
	strbuf_free(&twice);
	return 0;
}
