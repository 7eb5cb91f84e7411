/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/rpc_time.h"

#include "base/clock.h"
#include "config/units.h"

int rpc_read_time(const struct pb_reader *outer, struct slice bytes, int64_t *ret_ns,
		  struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int64_t seconds = 0, nanos = 0;

	while (pb_next(&in, &field)) {
		if (field.wire == PB_VARINT && field.number == 1)
			seconds = (int64_t)field.value;
		else if (field.wire == PB_VARINT && field.number == 2)
			nanos = (int64_t)field.value;
	}
	if (in.problem)
		return pb_fail(&in, "Timestamp", err);
	if (nanos < 0 || nanos >= CLOCK_NS_PER_S)
		return err_set(err, ERR_INVALID, "Timestamp: nanos are out of range");
	if (seconds >= UNITS_TIME_MAX_NS / CLOCK_NS_PER_S)
		*ret_ns = UNITS_TIME_MAX_NS;
	else if (seconds <= UNITS_TIME_MIN_NS / CLOCK_NS_PER_S)
		*ret_ns = UNITS_TIME_MIN_NS;
	else
		*ret_ns = seconds * CLOCK_NS_PER_S + nanos;
	return 0;
}
