/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables_check - whether a view keeps every promise of model/tables.h.
 *
 * Called for a batch before it is logged (a batch that cannot be read back must not be
 * acknowledged), and for every view decoded from disk (so that no reader needs to check an id
 * again). One pass, no memory.
 *
 * The arrays must be as long as their counts; everything else may be arbitrary.
 */
#ifndef FIRN_SERVER_PERSIST_LOG_TABLES_CHECK_H
#define FIRN_SERVER_PERSIST_LOG_TABLES_CHECK_H

#include "base/err.h"
#include "model/tables.h"

/*
 * ERR_CORRUPT, naming the first broken rule and the id it was found at: every id in range; string,
 * label set and node 0 are the empty ones; label sets strictly ascending; a node's parent is
 * smaller than the node; reports are contiguous; totals are the (saturated) sums.
 */
MUST_USE int tables_check(const struct tables_view *view, struct err *err);

#endif
