/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_stripe_decode - decodes the reports and rows of a stripe from untrusted bytes.
 *
 * The result is a `struct part_stripe_image`, which starts zeroed, is reused and grows; otherwise
 * pure functions. Series, ranks and label sets are as the file says: the caller, which knows the
 * partition, checks them (last_slots).
 */
#ifndef FIRN_SERVER_PERSIST_PART_DECODE_PART_STRIPE_DECODE_H
#define FIRN_SERVER_PERSIST_PART_DECODE_PART_STRIPE_DECODE_H

#include "server/persist/part/decode/part_heads.h"

#define PART_STRIPE_SLACK 16u /* readable bytes that must lie behind the raw ones */

/* Reports that start within, but not in the hole; INT64_MAX is no end. */
struct part_stripe_range {
	int64_t from_ns, to_ns;
	struct segment_hole hole;
};

struct part_stripe_image {
	struct part_heads heads;
	struct segment_report *reports; /* the same, each for itself, with their rows */
	uint32_t *last_slots;		/* by report: the largest; of reports without rows 0 */
	uint32_t *slots;
	uint32_t *label_sets;
	int64_t *values; /* column by column; what the headers say of columns is in `heads` */
	bool has_reports;
	bool has_values;		/* else all are 1 */
	struct part_stripe_range range; /* of the reports whose rows are decoded */
	uint32_t reports_capacity;
	size_t rows_capacity, labels_capacity, values_capacity;
};

void part_stripe_image_free(struct part_stripe_image *image);

/* ERR_CORRUPT, ERR_UNSUPPORTED. Without `reports`. */
MUST_USE int part_stripe_decode_headers(struct slice raw, const struct part_stripe_shape *shape,
					struct part_stripe_image *image, struct err *err);

/* After the headers, any number of times: `reports`. */
void part_stripe_make_reports(struct part_stripe_image *image);

/*
 * After the reports; PART_STRIPE_SLACK bytes behind `raw` are readable. Rows of reports that start
 * outside the range are skipped; their place has undefined values.
 */
MUST_USE int part_stripe_decode_rows(struct slice raw, struct part_stripe_range range,
				     struct part_stripe_image *image, struct err *err);

/* Checks that the totals are the sums of the rows; for callers that read everything. */
MUST_USE int part_stripe_check_totals(const struct part_stripe_image *image, struct err *err);

#endif
