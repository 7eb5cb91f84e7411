/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_parquet - raw reports as two Parquet files (docs/formats/parquet.md):
 *
 *   rows     one row per report, stack and sample type, with the labels of its series
 *   stacks   one row per stack, its frames as lists, leaf first
 *
 * Streams: memory is what two row groups, one block and the stacks of one segment take. Reports
 * that cannot be read are left out and counted.
 */
#ifndef FIRN_SERVER_PARQUET_EXPORT_PARQUET_H
#define FIRN_SERVER_PARQUET_EXPORT_PARQUET_H

#include "codec/wire/parquet.h"
#include "model/selector.h"
#include "server/persist/store.h"

struct export_options {
	int64_t from_ns, to_ns;		 /* a report is in when from <= start < to */
	const struct selector *selector; /* NULL: everything */
};

struct export_result {
	uint64_t reports, rows, stacks;
	uint64_t parts_unreadable;
};

struct export_sink {
	parquet_sink_f *write;
	void *context;
};

/* ERR_LIMIT when there are more label names than columns can be made of. */
int export_parquet(struct store *store, const struct export_options *options,
		   const struct export_sink *rows, const struct export_sink *stacks,
		   struct export_result *ret, struct err *err);

#endif
