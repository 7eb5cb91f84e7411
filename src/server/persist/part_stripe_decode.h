/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_stripe_decode - the reports and rows of a stripe out of bytes that nobody vouches for.
 *
 * What is decoded lies in `struct part_stripe_image`, which starts zeroed, is reused and grows;
 * once it has grown, nothing is allocated. Pure functions else. Series, ranks and label sets are
 * as large as the file says: who knows the partition checks them (last_slots).
 */
#ifndef FIRN_SERVER_PERSIST_PART_STRIPE_DECODE_H
#define FIRN_SERVER_PERSIST_PART_STRIPE_DECODE_H

#include "server/persist/part_format.h"

#define PART_STRIPE_ROWS_MAX ((uint64_t)1 << 26)
#define PART_STRIPE_VALUES_MAX ((uint64_t)1 << 27)
#define PART_STRIPE_SLACK 16u /* readable bytes that must lie behind the raw ones */

/* From the directory. */
struct part_stripe_shape {
	uint32_t reports, columns;
	uint64_t rows;
};

struct part_stripe_image {
	struct part_stripe_shape shape;
	bool has_labels, is_rollup;
	struct segment_report *reports;
	int64_t *totals;      /* columns per report */
	uint32_t *last_slots; /* by report: the largest; of reports without rows 0 */
	uint32_t *slots;
	uint32_t *label_sets;
	int64_t *values; /* column by column; what the headers say of columns is in `columns` */
	bool has_values; /* else all are 1 */
	struct part_column_code {
		enum part_column_mode mode;
		int64_t number;
	} columns[TABLES_COLUMNS_PER_GROUP_MAX];
	/* Scratch. */
	uint32_t *blocks;
	struct part_span {
		int64_t start_ns, duration_ns, end_ns;
	} * spans;
	uint32_t reports_capacity;
	size_t totals_capacity, rows_capacity, labels_capacity, values_capacity;
};

void part_stripe_image_free(struct part_stripe_image *image);

/* ERR_CORRUPT, ERR_LIMIT. */
int part_stripe_decode_headers(struct slice raw, const struct part_stripe_shape *shape,
			       struct part_stripe_image *image, struct err *err);

/* After the headers; PART_STRIPE_SLACK bytes behind `raw` are readable. */
int part_stripe_decode_rows(struct slice raw, struct part_stripe_image *image, struct err *err);

/* Whether the totals are what the rows say; for who reads everything. */
int part_stripe_check_totals(const struct part_stripe_image *image, struct err *err);

#endif
