/* SPDX-License-Identifier: Apache-2.0 */
/* jfr_decode on any bytes: what it makes are well-formed profiles. */
#include <assert.h>
#include <stdlib.h>

#include "base/budget.h"
#include "codec/profile/jfr.h"

#define ELEMENTS_MAX 20000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct budget budget = { .max_bytes = INT64_MAX };
	struct err err = { 0 };
	struct jfr jfr;
	int rc = jfr_decode(slice_from(data, size), NULL, ELEMENTS_MAX, &budget, &jfr, &err);

	if (rc && !err.message[0])
		abort();
	for (int i = 0; i < JFR_KINDS; i++) {
		const struct pprof *profile = &jfr.built[i].profile;

		if (!jfr.built[i].strings)
			continue;
		for (size_t k = 0; k < profile->samples.count; k++)
			if (profile->samples.data[k].value_count != profile->sample_types.count)
				abort();
		for (size_t k = 0; k < profile->values.count; k++)
			if (profile->values.data[k] < 0)
				abort();
	}
	jfr_free(&jfr);
	assert(!budget.used_bytes);
	return 0;
}
