/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_from_otlp: the tables are sound, whatever the request was. */
#include "ingest_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ingest_scratch *scratch;
	static struct tables tables;
	struct ingest_partial partial;
	struct err err;

	if (!scratch) {
		scratch = ingest_scratch_new(&fuzz_budget);
		tables_init(&tables);
	}
	tables_reset(&tables);
	ingest_scratch_forget_batch(scratch);
	if (ingest_from_otlp(scratch, &fuzz_limits, slice_from(data, size), FUZZ_NOW_NS, &tables,
			     &partial, &err))
		assert(err.code && err.message[0] && !tables.reports.count);
	check_tables(&tables);
	assert(fuzz_budget.used_bytes <= fuzz_budget.max_bytes);
	return 0;
}
