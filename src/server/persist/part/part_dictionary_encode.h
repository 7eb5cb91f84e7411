/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_dictionary_encode - a partition's dictionaries as sections. Only for part_writer.c.
 *
 * Strings get new numbers: those of labels first, sorted; then those of frames, field by field in
 * the order of their first use. Frames are numbered in the order in which nodes use them. Label
 * sets of rows get the numbers from 1 on, in the order of the view; label sets of series (even
 * those that rows have, too) get the numbers after them, in the order of series.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_DICTIONARY_ENCODE_H
#define FIRN_SERVER_PERSIST_PART_PART_DICTIONARY_ENCODE_H

#include "server/persist/part/part_format.h"
#include "server/persist/part/part_writer.h"

/* How the view's ids are numbered in the part. */
struct part_numbers {
	uint32_t *strings;			     /* by id of the view */
	uint32_t label_strings_count, strings_count; /* the empty one included */
	uint32_t *frames;			     /* likewise */
	uint32_t *frames_in_order;		     /* ids of the view by number */
	uint32_t *row_label_sets;		     /* by id of the view */
	uint32_t row_label_sets_count;
	uint32_t *ranks; /* by node; UINT32_MAX where it has no rows */
	uint32_t ranks_count;
};

void part_numbers_make(const struct part_dictionary *dictionary, struct part_numbers *ret);
void part_numbers_free(struct part_numbers *numbers);

/* Appends the sections to the builders of the same index (PART_SECTIONS); not that of the blocks.
 */
void part_dictionary_encode(const struct part_dictionary *dictionary,
			    const struct part_numbers *numbers,
			    struct part_chunk_builder *builders);

#endif
