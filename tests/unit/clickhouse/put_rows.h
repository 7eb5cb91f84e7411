/* SPDX-License-Identifier: Apache-2.0 */
/* put_rows - rows of firn's tables by hand, as ClickHouse answers the statements that read them. */
#ifndef FIRN_TESTS_UNIT_CLICKHOUSE_PUT_ROWS_H
#define FIRN_TESTS_UNIT_CLICKHOUSE_PUT_ROWS_H

#include "server/clickhouse/ch_reading.h"

static inline void put_number(struct strbuf *rows, uint32_t number)
{
	strbuf_add_u32(rows, number);
}

static inline void put_numbers(struct strbuf *rows, uint32_t count, const uint32_t *numbers)
{
	strbuf_add_varint(rows, count);
	for (uint32_t i = 0; i < count; i++)
		put_number(rows, numbers[i]);
}

static inline void put(struct strbuf *rows, const char *text)
{
	ch_put_text(rows, slice_of(text));
}

/* As the statement of ch_series.c orders the columns. */
static inline void put_series(struct strbuf *rows, uint64_t id, const char *job,
			      enum column_kind kind, bool labelled)
{
	put(rows, "cpu");
	put(rows, job);
	strbuf_add_u64(rows, id);
	ch_put_u8(rows, labelled);
	strbuf_add_varint(rows, 1);
	put(rows, "job");
	strbuf_add_varint(rows, 1);
	put(rows, job);
	strbuf_add_varint(rows, 1);
	put(rows, "samples");
	strbuf_add_varint(rows, 1);
	put(rows, "count");
	strbuf_add_varint(rows, 1);
	ch_put_u8(rows, (uint8_t)kind);
	put(rows, "cpu");
	put(rows, "nanoseconds");
	strbuf_add_u64(rows, 1000);
}

static inline void put_frame(struct strbuf *rows, uint64_t dict, uint32_t number,
			     const char *function)
{
	strbuf_add_u64(rows, dict);
	put_number(rows, number);
	ch_put_u8(rows, FRAME_NATIVE);
	ch_put_u8(rows, 0);
	strbuf_add_u64(rows, 0);
	put(rows, "/bin/x");
	put(rows, "");
	put(rows, function);
	put(rows, "");
	put(rows, "x.c");
	for (int i = 0; i < 3; i++)
		put_number(rows, 7);
}

/* What version 2 added to a row of firn_stack. */
static inline void put_stacks(struct strbuf *rows, uint32_t first_node, uint32_t nodes,
			      const uint32_t *ups, uint32_t first_stack, uint32_t stacks,
			      const uint32_t *ends)
{
	put_number(rows, first_node);
	put_numbers(rows, nodes, ups);
	put_number(rows, first_stack);
	put_numbers(rows, stacks, ends);
}

#endif
