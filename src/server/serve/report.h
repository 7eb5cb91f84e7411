/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report - a tree as Parca's reports: parca.query.v1alpha1.QueryResponse's fields (query.proto).
 * Each appends the field of its report to the message.
 */
#ifndef FIRN_SERVER_SERVE_REPORT_H
#define FIRN_SERVER_SERVE_REPORT_H

#include "server/query/tree.h"

/*
 * flamegraph_arrow = 11. A child stays when it is more than trim_percent of its parent (0: all);
 * rows are breadth first, row 0 is the root.
 */
void report_flamegraph_arrow(const struct tree *tree, double trim_percent, struct strbuf *out);

void report_table_arrow(const struct tree *tree, struct strbuf *out); /* table_arrow = 13 */
void report_top(const struct tree *tree, struct strbuf *out);	      /* top = 7 */
void report_callgraph(const struct tree *tree, struct strbuf *out);   /* callgraph = 8 */

/* profile_metadata = 14: binaries of the frames, and the given label names. */
void report_metadata(const struct tree *tree, const struct slice *labels, size_t labels_count,
		     struct strbuf *out);

#endif
