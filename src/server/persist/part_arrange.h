/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_arrange - the same profiles in the order in which a part keeps them.
 *
 *   series   by group, then labels
 *   reports  by series, then start
 *   nodes    depth-first, of siblings the one with more rows below it first
 *   rows     of a report by stack, then sample labels
 *
 * Ids that belong together become neighbours: distances are small, zstd does the rest. Frames,
 * strings and label sets come in the order of their first use; what nobody uses is left out.
 */
#ifndef FIRN_SERVER_PERSIST_PART_ARRANGE_H
#define FIRN_SERVER_PERSIST_PART_ARRANGE_H

#include "model/tables.h"

/* Fills `into`, which is freshly made (tables_init). The contents of `from` are checked ones. */
void part_arrange(const struct tables_view *from, struct tables *into);

#endif
