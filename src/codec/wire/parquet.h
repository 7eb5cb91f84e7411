/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet - writes Parquet files (parquet-format 2.10), which DuckDB, ClickHouse, Spark, Arrow
 * read.
 *
 * Flat columns of 64-bit integers and texts, either optional or lists of them. A column chunk is
 * one data page (version 1), compressed with zstd; texts stand in a dictionary of the chunk.
 * Rows are collected per row group and handed to the sink when it is full: memory is bounded by
 * PARQUET_ROWS and PARQUET_BYTES, whatever comes first, plus some 100 bytes per column and group.
 *
 * One thread. Errors are the sink's; after one nothing is written any more.
 */
#ifndef FIRN_CODEC_WIRE_PARQUET_H
#define FIRN_CODEC_WIRE_PARQUET_H

#include "base/err.h"
#include "base/strbuf.h"

#define PARQUET_ROWS 131072u
#define PARQUET_BYTES ((size_t)32 << 20) /* of collected values */

enum parquet_type {
	PARQUET_INT64,
	PARQUET_UINT64,
	PARQUET_TIMESTAMP_NS, /* since the epoch; the file does not say in which zone: it is UTC */
	PARQUET_TEXT,	      /* UTF-8 */
};
enum parquet_shape { PARQUET_REQUIRED, PARQUET_OPTIONAL, PARQUET_LIST };

struct parquet_column {
	struct slice name; /* borrowed until the end */
	enum parquet_type type;
	enum parquet_shape shape;
};

typedef int parquet_sink_f(void *context, struct slice bytes, struct err *err);

struct parquet;

struct parquet *parquet_new(const struct parquet_column *columns, size_t count,
			    parquet_sink_f *sink, void *context);
void parquet_free(struct parquet *parquet);

/*
 * The values of a row, column by column in any order: one of a required column, one or none of an
 * optional one, any number of a list.
 */
void parquet_put(struct parquet *parquet, size_t column, int64_t value);
void parquet_put_text(struct parquet *parquet, size_t column, struct slice value);
int parquet_end_row(struct parquet *parquet, struct err *err);

/* The rest of the rows and the footer; the file is complete then. */
int parquet_finish(struct parquet *parquet, struct err *err);

#endif
