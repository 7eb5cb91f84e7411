/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_from_pprof: the tables are sound, whatever the profile was. */
#include "ingest_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ingest_scratch *scratch;
	static struct tables tables;
	struct ingest_label label = { SLICE_LITERAL("node"), SLICE_LITERAL("fuzz") };
	struct ingest_pprof input = { .bytes = slice_from(data, size),
				      .labels = &label,
				      .labels_count = 1,
				      .now_ns = FUZZ_NOW_NS };
	struct err err;

	if (!scratch) {
		scratch = ingest_scratch_new(&fuzz_budget);
		tables_init(&tables);
	}
	tables_reset(&tables);
	ingest_scratch_forget_batch(scratch);
	if (ingest_from_pprof(scratch, &fuzz_limits, &input, &tables, &err))
		assert(err.code && err.message[0] && !tables.reports.count);
	else
		assert(tables.reports.count == 1);
	check_tables(&tables);
	assert(fuzz_budget.used_bytes <= fuzz_budget.max_bytes);
	return 0;
}
