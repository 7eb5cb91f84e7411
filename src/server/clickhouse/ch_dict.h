/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_dict - numbers the stacks of this server's reports, and makes the rows of a flush.
 *
 * Servers need not agree on numbers. Each numbers frames, nodes, stacks and sets of sample labels
 * by itself, in dictionaries with random 64-bit names. A report names its dictionary, and the
 * meaning of a number never changes.
 *
 * Readers ask for one service's days, so each *place* (tenant, service, UTC day) has a dictionary
 * of its own. Its numbers are dense, and given in the order of first sight: what is frequent has
 * small ones, and the rows of a report, which are in their order, take few bytes. Rows count as
 * stored when their flush is acknowledged; after a failed flush all dictionaries are dropped and
 * new, empty ones begin.
 *
 * One thread at a time. Memory: ch_dict_bytes; the owner begins a new one above its limit.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_DICT_H
#define FIRN_SERVER_CLICKHOUSE_CH_DICT_H

#include "base/strbuf.h"
#include "server/persist/batch/memtable.h"

struct ch_dict;

/* Rows for the tables of that name, in RowBinary; in the order in which they are inserted. */
struct ch_flush {
	struct strbuf frames, stacks, label_sets, series, reports;
	uint64_t reports_count;
};

/* Columns of the rows, for ch_insert. */
#define CH_DICT_FRAMES                                                                             \
	"firn_frame (tenant, service, day, keep, dict, frame, kind, flags, address, mapping, "     \
	"build_id, function, system_name, file, line, col, start_line)"
#define CH_DICT_STACKS                                                                             \
	"firn_stack (tenant, service, day, keep, dict, flush, first_node, ups, frames, "           \
	"first_stack, ends)"
#define CH_DICT_LABEL_SETS                                                                         \
	"firn_label_set (tenant, service, day, keep, dict, lset, names, texts, units, numbers, "   \
	"numeric)"
#define CH_DICT_SERIES                                                                             \
	"firn_series (tenant, type, service, day, keep, series, labelled, names, vals, "           \
	"sample_types, sample_units, kinds, period_type, period_unit, period)"
#define CH_DICT_REPORTS                                                                            \
	"firn_report (tenant, type, service, start, series, batch, rank, keep, duration, dict, "   \
	"totals, stacks, vals, lsets, moment_rows, moment_ticks, moment_links)"

/* How many days a tenant's reports are kept. */
typedef uint16_t ch_keep_f(void *context, struct slice tenant);

/* `id` is random: names of dictionaries are made of it. */
struct ch_dict *ch_dict_new(uint64_t id, ch_keep_f *keep, void *keep_context);
void ch_dict_free(struct ch_dict *dict); /* accepts NULL */
size_t ch_dict_bytes(const struct ch_dict *dict);

/* The memtable to which reports are applied (memtable_apply); ch_dict_flush empties it. */
struct memtable *ch_dict_table(struct ch_dict *dict);

/* The rows of all reports in the memtable, and of the numbers that their places lack. */
void ch_dict_flush(struct ch_dict *dict, struct ch_flush *ret);
void ch_flush_free(struct ch_flush *flush);

#endif
