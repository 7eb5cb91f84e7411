/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_stripe_encode - gathers reports of one level into a stripe, and encodes it.
 *
 * A stripe holds blocks of neighbouring partitions with the same columns, at most
 * PART_BLOCK_REPORTS_MAX reports, PART_BLOCK_ROWS_MAX rows and PART_BLOCK_MOMENTS_MAX moments
 * unless one report has more. Its fields lie together, whichever block they belong to. Only for
 * part_writer.c.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_STRIPE_ENCODE_H
#define FIRN_SERVER_PERSIST_PART_PART_STRIPE_ENCODE_H

#include "server/persist/part/part_format.h"
#include "server/persist/part/part_moments.h"
#include "server/persist/part/part_writer.h"

struct part_stripe_report {
	uint32_t series, row_count, reports_count, moment_count;
	int64_t start_ns, duration_ns, end_ns;
	uint64_t row_first;
};

struct part_stripe {
	bool open;
	uint32_t number;
	uint32_t type; /* of all its partitions */
	uint32_t columns;
	bool has_labels, is_rollup;
	struct part_stripe_report *reports;
	uint32_t reports_count, reports_capacity;
	uint32_t *blocks; /* reports in each */
	uint32_t blocks_count, blocks_capacity;
	uint32_t *ranks, *label_sets; /* by row */
	int64_t *values;	      /* columns per row */
	uint64_t *order;	      /* scratch */
	struct part_moments moments;
	uint64_t rows_count;
	size_t rows_capacity, values_capacity;
};

void part_stripe_free(struct part_stripe *stripe);

/* True if a report with so many rows has room in it. */
bool part_stripe_has_room(const struct part_stripe *stripe, const struct part_report *report);
void part_stripe_begin_block(struct part_stripe *stripe);

/* Rows are sorted by rank; label sets are numbers of row label sets (0: none). */
void part_stripe_add(struct part_stripe *stripe, const struct part_report *report,
		     const uint32_t *rank_of_node, const uint32_t *row_label_sets);

/* Raw bytes of headers, rows, and moments, if there are any; the stripe is empty afterwards. */
void part_stripe_encode(struct part_stripe *stripe, struct part_chunk_builder *headers,
			struct part_chunk_builder *rows, struct part_chunk_builder *moments);

#endif
