/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a duration, a size and a time within their limits, or an error that says why. */
#include <assert.h>
#include <stdint.h>

#include "config/units.h"

#define NOW_NS INT64_C(1700000000000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size);
	struct err err = { 0 };
	int64_t ns = 0;
	uint64_t bytes;
	double percent = 0;

	assert(!units_parse_duration(text, &ns, &err) ? ns >= 0 : err.message[0] != '\0');
	err.message[0] = '\0';
	if (units_parse_size(text, &bytes, &percent, &err))
		assert(err.message[0]);
	else
		assert(percent >= 0 && percent <= 100);
	err.message[0] = '\0';
	if (units_parse_time(text, NOW_NS, &ns, &err))
		assert(err.message[0]);
	else
		assert(ns >= UNITS_TIME_MIN_NS && ns <= UNITS_TIME_MAX_NS);
	return 0;
}
