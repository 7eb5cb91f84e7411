/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report - a tree as Parca's reports: parca.query.v1alpha1.QueryResponse's fields (query.proto).
 * Each appends the field of its report to the message.
 */
#ifndef FIRN_SERVER_SERVE_PARCA_REPORT_H
#define FIRN_SERVER_SERVE_PARCA_REPORT_H

#include "server/query/series/flamechart.h"
#include "server/query/tree/lines.h"
#include "server/query/tree/tree.h"

/*
 * flamegraph_arrow = 11. A child stays when it is more than trim_percent of its parent (0: all), on
 * either side of a diff; rows are breadth first, row 0 is the root. `timestamps` by node, or NULL.
 */
void report_flamegraph_arrow(const struct tree *tree, double trim_percent,
			     const int64_t *timestamps, struct strbuf *out);

/* The same report of stacks over time: a row per box, below what it was called by. */
void report_flamechart(const struct flamechart *chart, struct strbuf *out);

/*
 * flamegraph = 5, the older forms: nodes in nodes, with their texts in place, or (`tables`) numbers
 * of entries in tables.
 */
void report_flamegraph(const struct tree *tree, double trim_percent, bool tables,
		       struct strbuf *out);

/* source = 12: the lines of a file with values, and its text. */
void report_source(const struct tree *tree, const struct lines *lines, struct slice text,
		   struct strbuf *out);

void report_table_arrow(const struct tree *tree, struct strbuf *out); /* table_arrow = 13 */
void report_top(const struct tree *tree, struct strbuf *out);	      /* top = 7 */
void report_callgraph(const struct tree *tree, struct strbuf *out);   /* callgraph = 8 */

/*
 * A node's meta as field `number`: location = 1 { address = 2 }; mapping = 2 { file = 5; build_id =
 * 6 }; function = 3 { start_line = 2; name = 3; system_name = 4; filename = 5 } (metastore.proto)
 */
void report_meta(const struct tree_function *function, uint32_t number, struct strbuf *out);

/* profile_metadata = 14: binaries of the frames, and the given label names. */
void report_metadata(const struct tree *tree, const struct slice *labels, size_t labels_count,
		     struct strbuf *out);

#endif
