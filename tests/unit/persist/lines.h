/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines - profiles as sorted lines of text, whatever they are kept in: what tests compare.
 *
 * One line per report (type, labels, times, totals), one per row of it (the same, stack, sample
 * labels, values), one per moment of the row (the same, tick, link). Rows of a report and reports
 * come in any order.
 */
#ifndef FIRN_TESTS_PERSIST_LINES_H
#define FIRN_TESTS_PERSIST_LINES_H

#include "model/segment.h"

struct lines {
	char **items;
	size_t count, capacity;
};

/* Fails the test when the segment cannot be read. Only reports within its range. */
void lines_add(struct lines *lines, struct segment *segment);
void lines_add_tables(struct lines *lines, const struct tables_view *view);

/* Fails the test with the first difference; empties both. */
void lines_assert_equal(struct lines *a, struct lines *b);
void lines_free(struct lines *lines);

#endif
