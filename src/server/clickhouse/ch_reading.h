/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_reading - what the files of ch_snapshot share: one snapshot while it is made.
 *
 * Steps: find the series (ch_series), read their reports (ch_reports) or sums of these (ch_sums),
 * and look up their stacks in the dictionaries (ch_stacks). The result is plain tables; equal
 * stacks of different dictionaries become one.
 *
 * The decoders read outside bytes: they need no ClickHouse, and are fuzzed. Malformed bytes are
 * ERR_CORRUPT, too many ERR_NO_MEMORY.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_READING_H
#define FIRN_SERVER_CLICKHOUSE_CH_READING_H

#include "model/segment.h"
#include "server/clickhouse/ch_lexicon.h"
#include "server/clickhouse/ch_rows.h"
#include "server/clickhouse/ch_store_int.h"

#define CH_ROWS_BETWEEN_CHECKS 4096u

#define CH_NAMED UINT32_MAX /* a report names the number, and what it is here is not known yet */

/* Numbers of one dictionary, and what they are here, plus one; 0: not known. */
struct ch_numbers {
	uint32_t *ids;
	uint32_t count;
};

/* A dictionary that reports name: what is known of it, and what of that is in the tables here. */
struct ch_read_dict {
	uint64_t id;
	struct ch_lexicon *lexicon;
	uint32_t stacks_max, label_sets_max; /* the largest numbers that reports name */
	struct ch_numbers stacks, label_sets;
};

/* The memory that a snapshot keeps until its release. */
struct ch_pins {
	struct tables tables;
	struct segment_sum *sums; /* NULL: the reports are raw */
	size_t taken;		  /* of store->memory */
};

struct ch_reading {
	struct ch_store *store; /* who is asked; decoders do without */
	struct budget *memory;
	const struct store_query *query;
	struct ch_wanted wanted;
	struct ch_catalogue catalogue;
	struct strbuf reports; /* rows of reports, or of sums */
	struct ch_read_dict *dicts;
	uint32_t dicts_count, dicts_capacity;
	size_t dicts_bytes; /* of all, with lexicons */
	struct idmap dicts_map;
	struct ch_pins *pins;
	struct tables *tables;		/* of the pins */
	size_t taken;			/* of the memory */
	struct tables_copy series_copy; /* from the catalogue; begun by who adds reports */
	uint64_t unreadable;
	size_t sums_capacity;
	uint32_t columns; /* values that a row of sums has: of the series with the most */
	struct row *rows; /* scratch, likewise values and moments */
	int64_t *values;
	struct moment *moments;
	size_t rows_capacity, values_capacity, moments_capacity;
};

/* `wanted`, `query` and `store` are the caller's to set. */
void ch_reading_init(struct ch_reading *reading, struct budget *memory);
void ch_reading_free(struct ch_reading *reading); /* the pins too, unless they were taken out */
void ch_pins_free(struct ch_pins *pins, struct budget *memory); /* accepts NULL */

/* Tables, dictionaries and answers as at the beginning; the catalogue stays. */
void ch_reading_again(struct ch_reading *reading);
void ch_reading_give_dicts(struct ch_reading *reading);

int ch_malformed(const char *table, struct err *err);
int ch_too_large(const struct ch_reading *reading, struct err *err);

/* Pays for `bytes` in all, besides the tables and lexicons. */
int ch_pay(struct ch_reading *reading, size_t bytes, struct err *err);

/* A row of a report names them; 0: the empty ones. */
void ch_name(struct ch_reading *reading, struct ch_read_dict *dict, uint32_t stack,
	     uint32_t label_set);

/* After ch_translate_dicts: what the number is here, plus one; 0: not known. */
static inline uint32_t ch_here(const struct ch_numbers *numbers, uint32_t number)
{
	if (!number)
		return 1;
	return number < numbers->count ? numbers->ids[number] : 0;
}

struct ch_read_dict *ch_find_dict(const struct ch_reading *reading, uint64_t id);
struct ch_read_dict *ch_add_dict(struct ch_reading *reading, uint64_t id); /* or finds it */

/* " AND service IN (...)", " AND series IN (...)": of the catalogue, unless these are very many. */
void ch_add_services(const struct ch_reading *reading, struct strbuf *sql);
void ch_add_series(const struct ch_reading *reading, struct strbuf *sql);

struct slice ch_take_array(struct byte_reader *in, size_t element_bytes, uint32_t *ret_count);

static inline uint32_t ch_u32_at(struct slice bytes, uint32_t at)
{
	uint32_t value;

	memcpy(&value, bytes.data + (size_t)at * 4, 4);
	return value;
}

static inline int64_t ch_i64_at(struct slice bytes, uint64_t at)
{
	int64_t value;

	memcpy(&value, bytes.data + at * 8, 8);
	return value;
}

/*
 * ch_stacks.c: what the dictionaries say, by one statement for each kind of thing that lexicons
 * lack. Tables get what reports name, when they name it.
 */
enum ch_dict_kind { CH_DICT_OF_FRAMES, CH_DICT_OF_STACKS, CH_DICT_OF_LABEL_SETS };
int ch_read_dicts(struct ch_reading *reading, struct err *err);
bool ch_dict_statement(const struct ch_reading *reading, enum ch_dict_kind kind,
		       struct strbuf *sql); /* false: nothing is lacking */
int ch_take_dict_rows(struct ch_reading *reading, enum ch_dict_kind kind, struct slice rows,
		      struct err *err);

/* Puts the rows of dictionaries that reports name into the tables. */
int ch_translate_dicts(struct ch_reading *reading, struct err *err);

/* ch_reports.c: every report with its rows. The takers work on reading->reports. */
int ch_read_reports(struct ch_reading *reading, struct err *err);
int ch_find_dicts(struct ch_reading *reading, struct err *err);
int ch_take_reports(struct ch_reading *reading, struct err *err);

/* ch_sums.c: fewer reports than there are, each standing for several. */
enum ch_sums_of {
	CH_SUMS_NONE,	/* the query needs every report */
	CH_SUMS_STACKS, /* sums by stack, over the range or by step */
	CH_SUMS_TOTALS, /* totals by step, */
	CH_SUMS_HEADS,	/* or of each report; no rows */
	CH_SUMS_LISTS,	/* a report for each series, and the labels of its rows */
};
enum ch_sums_of ch_sums_for(const struct ch_reading *reading);

/* ret_raw: sums would not be exact; read raw reports instead, after ch_reading_again. */
int ch_read_sums(struct ch_reading *reading, enum ch_sums_of of, bool *ret_raw, struct err *err);

/* As the others of ch_reports.c; reading->columns is known then. */
void ch_sums_begin(struct ch_reading *reading);
void ch_sums_statement(const struct ch_reading *reading, enum ch_sums_of of, struct strbuf *sql);
int ch_find_sums_dicts(struct ch_reading *reading, struct err *err);
int ch_take_sums(struct ch_reading *reading, bool *ret_raw, struct err *err);

#endif
