/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_dictionary_decode - decodes a partition's dictionaries from untrusted bytes.
 *
 * In two steps: what selecting needs, then frames and nodes. The result has passed tables_check.
 * Label sets of rows have the ids that rows name them by; those of series follow, one per series.
 * Pure functions. Errors: ERR_CORRUPT, ERR_UNSUPPORTED.
 */
#ifndef FIRN_SERVER_PERSIST_PART_DECODE_PART_DICTIONARY_DECODE_H
#define FIRN_SERVER_PERSIST_PART_DECODE_PART_DICTIONARY_DECODE_H

#include "server/persist/part/part_format.h"
#include "server/persist/part/decode/part_reader.h"

/* The directory's entry for the dictionaries of a partition. */
struct part_dictionary_shape {
	uint32_t series, row_label_sets, label_strings, strings, frames, nodes, stacks;
	const struct part_partition *type; /* group and columns */
	uint32_t blocks[SEGMENT_LEVELS];
	int64_t start_min_ns, start_max_ns; /* of raw reports */
};

struct part_block {
	uint32_t stripe, first; /* report of the stripe */
};

struct part_series_image {
	struct tables_view view;		    /* one node: the root */
	struct segment_zone *zones[SEGMENT_LEVELS]; /* without bytes */
	struct part_block *blocks[SEGMENT_LEVELS];
	uint32_t type_strings_first, type_strings_count; /* between those of labels and frames */
	size_t bytes;					 /* of memory */
};

struct part_stacks_image {
	struct tables_view view; /* with all that the first helping's has */
	uint32_t *node_of_rank;
	size_t bytes;
};

MUST_USE int part_series_decode(struct slice index, struct slice series,
				const struct part_dictionary_shape *shape,
				struct part_series_image *ret, struct err *err);
void part_series_free(struct part_series_image *image);

MUST_USE int part_stacks_decode(struct slice strings, struct slice frames, struct slice nodes,
				const struct part_dictionary_shape *shape,
				const struct part_series_image *series,
				struct part_stacks_image *ret, struct err *err);
void part_stacks_free(struct part_stacks_image *image);

#endif
