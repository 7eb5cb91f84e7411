/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_heads - decodes the headers of a stripe's reports, by columns, from untrusted bytes.
 *
 * `struct part_heads` starts zeroed, is reused and grows; otherwise pure functions. Series ids are
 * as the file says: the caller, which knows the partition, checks them.
 */
#ifndef FIRN_SERVER_PERSIST_PART_DECODE_PART_HEADS_H
#define FIRN_SERVER_PERSIST_PART_DECODE_PART_HEADS_H

#include "server/persist/part/part_format.h"

#define PART_STRIPE_ROWS_MAX ((uint64_t)1 << 26)
#define PART_STRIPE_VALUES_MAX ((uint64_t)1 << 27)

/* From the directory. */
struct part_stripe_shape {
	uint32_t reports, columns;
	uint64_t rows;
};

struct part_heads {
	struct part_stripe_shape shape;
	bool has_labels, is_rollup;
	struct part_column_code {
		enum part_column_mode mode;
		int64_t number;
	} columns[TABLES_COLUMNS_PER_GROUP_MAX];
	struct segment_run *runs; /* none lies in two blocks */
	uint32_t runs_count;
	/*
	 * Of the stripe's spans, in the order of their starts; behind them, of the reports of runs
	 * that do not have one span after the other.
	 */
	int64_t *starts_ns, *durations_ns, *ends_ns;
	uint32_t spans_count, times_count;
	bool ends_ascend; /* of spans */
	int64_t longest_ns;
	uint32_t *row_counts;	  /* by report, as the next */
	int64_t *totals;	  /* columns each */
	uint32_t *reports_counts; /* of roll-ups */
	uint32_t *blocks;	  /* scratch */
	uint32_t reports_capacity;
	size_t totals_capacity;
};

/* True if the heads have the total of each report: else it follows from rows or column 0. */
static inline bool part_column_has_totals(const struct part_column_code *code)
{
	return code->mode == PART_COLUMN_VALUES || code->mode == PART_COLUMN_COUNTS;
}

void part_heads_free(struct part_heads *heads);
size_t part_heads_bytes(const struct part_heads *heads); /* of its memory */

/* ERR_CORRUPT, ERR_UNSUPPORTED. */
MUST_USE int part_heads_decode(struct slice raw, const struct part_stripe_shape *shape,
			       struct part_heads *heads, struct err *err);

#endif
