/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/part_stripe_encode.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/order/sort.h"

#define STREAM_BYTES_MIN 256u /* for a frame of its own */
#define TABLE_BITS 4u	      /* of an entropy coder, per symbol, about */
#define SORT_FEW_MAX 48u      /* keys that one by one are put in order sooner than by their bytes */
#define STRATA_MAX 4u	      /* more would save a percent, and slow readers down */

struct span { /* of reports that begin and last alike */
	int64_t start_ns, duration_ns;
};

/* What is known of a column of a stripe. */
struct column_code {
	enum part_column_mode mode;
	int64_t number;
};

void part_stripe_free(struct part_stripe *stripe)
{
	free(stripe->reports);
	free(stripe->blocks);
	free(stripe->ranks);
	free(stripe->label_sets);
	free(stripe->values);
	free(stripe->order);
	part_moments_free(&stripe->moments);
	*stripe = (struct part_stripe){ 0 };
}

bool part_stripe_has_room(const struct part_stripe *stripe, const struct part_report *report)
{
	if (!stripe->reports_count)
		return true;
	return stripe->reports_count < PART_BLOCK_REPORTS_MAX &&
	       stripe->rows_count + report->row_count <= PART_BLOCK_ROWS_MAX &&
	       stripe->moments.count + report->moment_count <= PART_BLOCK_MOMENTS_MAX;
}

void part_stripe_begin_block(struct part_stripe *stripe)
{
	assert(stripe->open);
	mem_grow(stripe->blocks, stripe->blocks_count, stripe->blocks_capacity);
	stripe->blocks[stripe->blocks_count++] = 0;
}

static void make_room(struct part_stripe *stripe, size_t rows)
{
	size_t want = stripe->rows_capacity ? stripe->rows_capacity : PART_BLOCK_ROWS_MAX;

	while (want < rows)
		want *= 2;
	if (want != stripe->rows_capacity) {
		stripe->ranks = mem_realloc(stripe->ranks, want, sizeof(uint32_t));
		stripe->label_sets = mem_realloc(stripe->label_sets, want, sizeof(uint32_t));
		stripe->order = mem_realloc(stripe->order, 2 * want, sizeof(uint64_t));
	}
	stripe->rows_capacity = want;
	if (want * stripe->columns > stripe->values_capacity) {
		stripe->values_capacity = want * stripe->columns;
		stripe->values =
			mem_realloc(stripe->values, stripe->values_capacity, sizeof(int64_t));
	}
}

static void sort_few(uint64_t *keys, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		uint64_t key = keys[i];
		uint32_t j = i;

		for (; j && keys[j - 1] > key; j--)
			keys[j] = keys[j - 1];
		keys[j] = key;
	}
}

/* Keys of ranks up to `rank_max`, which come in the order of their lower halves. */
static void sort_keys(uint64_t *keys, uint64_t *scratch, uint32_t count, uint32_t rank_max)
{
	if (count <= SORT_FEW_MAX) {
		sort_few(keys, count);
		return;
	}
	for (unsigned int shift = 32; shift < 64 && rank_max >> (shift - 32); shift += 16) {
		sort_by_digit(keys, scratch, count, shift, 8);
		sort_by_digit(scratch, keys, count, shift + 8, 8);
	}
}

/* Places of the rows by rank, then label set, then place: rank << 32 | place. */
static void sort_rows(const struct part_report *report, const uint32_t *rank_of_node,
		      uint64_t *order, uint64_t *scratch)
{
	uint32_t rank_max = 0;
	bool sorted = true;

	for (uint32_t i = 0; i < report->row_count; i++) {
		uint32_t rank = rank_of_node[report->nodes[i]];

		order[i] = (uint64_t)rank << 32 | i;
		rank_max = rank > rank_max ? rank : rank_max;
		sorted &= !i || order[i] >= order[i - 1];
	}
	if (!sorted)
		sort_keys(order, scratch, report->row_count, rank_max);
	if (!report->label_sets)
		return;
	for (uint32_t i = 1; i < report->row_count; i++) {
		uint64_t key = order[i];
		uint32_t label_set = report->label_sets[(uint32_t)key], j = i;

		for (; j && order[j - 1] >> 32 == key >> 32 &&
		       report->label_sets[(uint32_t)order[j - 1]] > label_set;
		     j--)
			order[j] = order[j - 1];
		order[j] = key;
	}
}

/* Places of rows changed when they were sorted. */
static void add_moments(struct part_stripe *stripe, const struct part_report *report)
{
	uint32_t *rows;

	if (!report->moment_count)
		return;
	rows = mem_new_array(uint32_t, report->row_count);
	for (uint32_t i = 0; i < report->row_count; i++)
		rows[(uint32_t)stripe->order[i]] = i;
	part_moments_add(&stripe->moments, report, rows);
	free(rows);
}

void part_stripe_add(struct part_stripe *stripe, const struct part_report *report,
		     const uint32_t *rank_of_node, const uint32_t *row_label_sets)
{
	uint64_t first = stripe->rows_count;

	assert(stripe->open && stripe->blocks_count && stripe->columns);
	make_room(stripe, first + report->row_count);
	mem_grow(stripe->reports, stripe->reports_count, stripe->reports_capacity);
	stripe->reports[stripe->reports_count++] = (struct part_stripe_report){
		.series = report->series,
		.row_count = report->row_count,
		.reports_count = report->reports_count,
		.moment_count = report->moment_count,
		.start_ns = report->start_ns,
		.duration_ns = report->duration_ns,
		.end_ns = report->end_ns,
		.row_first = first,
	};
	stripe->blocks[stripe->blocks_count - 1]++;
	sort_rows(report, rank_of_node, stripe->order, stripe->order + stripe->rows_capacity);
	add_moments(stripe, report);
	for (uint32_t i = 0; i < report->row_count; i++) {
		uint32_t place = (uint32_t)stripe->order[i];
		uint32_t label_set =
			report->label_sets ? row_label_sets[report->label_sets[place]] : 0;

		stripe->ranks[first + i] = (uint32_t)(stripe->order[i] >> 32);
		stripe->label_sets[first + i] = label_set;
		stripe->has_labels |= label_set != 0;
		memcpy(&stripe->values[(first + i) * stripe->columns],
		       &report->values[(size_t)place * stripe->columns],
		       stripe->columns * sizeof(int64_t));
	}
	assert(first + report->row_count <= stripe->rows_capacity);
	stripe->rows_count += report->row_count;
}

/* Columns. */

static int64_t value_at(const struct part_stripe *stripe, uint64_t row, uint32_t column)
{
	return stripe->values[row * stripe->columns + column];
}

static __int128 sum_of(const struct part_stripe *stripe, const struct part_stripe_report *report,
		       uint32_t column)
{
	__int128 sum = 0;

	for (uint32_t i = 0; i < report->row_count; i++)
		sum += value_at(stripe, report->row_first + i, column);
	return sum;
}

static bool is_constant(const struct part_stripe *stripe, uint32_t column, int64_t *ret)
{
	*ret = stripe->rows_count ? value_at(stripe, 0, column) : 1;
	for (uint64_t i = 1; i < stripe->rows_count; i++)
		if (value_at(stripe, i, column) != *ret)
			return false;
	return true;
}

static bool is_proportional(const struct part_stripe *stripe, uint32_t column, int64_t *ret)
{
	int64_t base = value_at(stripe, 0, 0), factor, product;

	if (base == 0 || base == -1)
		return false;
	factor = value_at(stripe, 0, column) / base;
	for (uint64_t i = 0; i < stripe->rows_count; i++)
		if (__builtin_mul_overflow(value_at(stripe, i, 0), factor, &product) ||
		    product != value_at(stripe, i, column))
			return false;
	/* Sums held to the ends of int64 are not proportional any more. */
	for (uint32_t i = 0; i < stripe->reports_count; i++) {
		int64_t total = part_clamp(sum_of(stripe, &stripe->reports[i], 0));

		if ((__int128)total * factor != sum_of(stripe, &stripe->reports[i], column))
			return false;
	}
	*ret = factor;
	return true;
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
	while (a) {
		uint64_t rest = b % a;

		b = a;
		a = rest;
	}
	return b;
}

static int64_t common_divisor(const struct part_stripe *stripe, uint32_t column)
{
	uint64_t divisor = 0;

	for (uint32_t i = 0; i < stripe->reports_count; i++) {
		__int128 sum = sum_of(stripe, &stripe->reports[i], column);

		if (sum != part_clamp(sum))
			return 1;
	}
	for (uint64_t i = 0; i < stripe->rows_count && divisor != 1; i++)
		divisor = greatest_divisor(magnitude(value_at(stripe, i, column)), divisor);
	return divisor && divisor <= INT64_MAX ? (int64_t)divisor : 1;
}

/* And no sum is cut off. */
static bool is_positive(const struct part_stripe *stripe, uint32_t column)
{
	for (uint64_t i = 0; i < stripe->rows_count; i++)
		if (value_at(stripe, i, column) <= 0)
			return false;
	for (uint32_t i = 0; i < stripe->reports_count; i++)
		if (sum_of(stripe, &stripe->reports[i], column) > INT64_MAX)
			return false;
	return true;
}

static struct column_code code_of(const struct part_stripe *stripe, uint32_t column)
{
	int64_t number;

	if (is_constant(stripe, column, &number))
		return (struct column_code){ PART_COLUMN_CONSTANT, number };
	if (column && is_proportional(stripe, column, &number))
		return (struct column_code){ PART_COLUMN_PROPORTIONAL, number };
	return (struct column_code){ is_positive(stripe, column) ? PART_COLUMN_COUNTS
								 : PART_COLUMN_VALUES,
				     common_divisor(stripe, column) };
}

/* Headers. */

static int span_order(const void *left, const void *right)
{
	const struct span *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->duration_ns > b->duration_ns) - (a->duration_ns < b->duration_ns);
}

static uint32_t collect_spans(const struct part_stripe *stripe, struct span *spans)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < stripe->reports_count; i++)
		spans[i] = (struct span){ stripe->reports[i].start_ns,
					  stripe->reports[i].duration_ns };
	qsort(spans, stripe->reports_count, sizeof(*spans), span_order);
	for (uint32_t i = 0; i < stripe->reports_count; i++)
		if (!i || span_order(&spans[i], &spans[count - 1]) != 0)
			spans[count++] = spans[i];
	assert(count <= stripe->reports_count);
	return count;
}

/* Starts as what lies between them beyond the least, in steps of what divides all. */
static void encode_starts(const struct span *spans, uint32_t count, struct strbuf *out)
{
	uint64_t step = 0, least = UINT64_MAX;

	for (uint32_t i = 1; i < count; i++) {
		uint64_t gap = (uint64_t)spans[i].start_ns - (uint64_t)spans[i - 1].start_ns;

		step = greatest_divisor(gap, step);
		least = gap < least ? gap : least;
	}
	if (!step)
		step = 1;
	least = count > 1 ? least / step : 0;
	strbuf_add_zigzag(out, count ? spans[0].start_ns : 0);
	strbuf_add_varint(out, step);
	strbuf_add_varint(out, least);
	for (uint32_t i = 1; i < count; i++) {
		uint64_t gap = (uint64_t)spans[i].start_ns - (uint64_t)spans[i - 1].start_ns;

		strbuf_add_varint(out, gap / step - least);
	}
}

/* As long as the one before, or, where reports follow each other, until the next begins. */
static void encode_durations(const struct span *spans, uint32_t count, bool until_next,
			     struct strbuf *out)
{
	uint64_t before = 0;

	strbuf_add_byte(out, until_next);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t duration = (uint64_t)spans[i].duration_ns, expected = before;

		if (until_next && i + 1 < count)
			expected = (uint64_t)spans[i + 1].start_ns - (uint64_t)spans[i].start_ns;
		strbuf_add_zigzag(out, (int64_t)(duration - expected));
		before = duration;
	}
}

static void encode_spans(const struct span *spans, uint32_t count, struct strbuf *out)
{
	struct strbuf like_before = { 0 }, until_next = { 0 };

	strbuf_add_varint(out, count);
	encode_starts(spans, count, out);
	encode_durations(spans, count, false, &like_before);
	encode_durations(spans, count, true, &until_next);
	strbuf_add_slice(
		out, strbuf_slice(until_next.len < like_before.len ? &until_next : &like_before));
	strbuf_free(&like_before);
	strbuf_free(&until_next);
}

static bool begins_run(const struct part_stripe *stripe, uint32_t report, uint32_t block_first)
{
	return report == block_first ||
	       stripe->reports[report].series != stripe->reports[report - 1].series;
}

static void encode_series(const struct part_stripe *stripe, struct strbuf *out)
{
	for (uint32_t block = 0, first = 0; block < stripe->blocks_count; block++) {
		uint32_t end = first + stripe->blocks[block], expected = 0;

		for (uint32_t i = first, run; i < end; i += run) {
			uint32_t series = stripe->reports[i].series;

			for (run = 1; i + run < end && !begins_run(stripe, i + run, first);)
				run++;
			strbuf_add_varint(out, series - expected);
			strbuf_add_varint(out, run - 1);
			expected = series + 1;
		}
		first = end;
	}
}

/* Within a run: distance from the next span; at its beginning: from where the last run began. */
static void encode_span_numbers(const struct part_stripe *stripe, const struct span *spans,
				uint32_t count, struct strbuf *out)
{
	int64_t run_first = 0, expected = 0;

	for (uint32_t block = 0, first = 0; block < stripe->blocks_count; block++) {
		uint32_t end = first + stripe->blocks[block];

		for (uint32_t i = first; i < end; i++) {
			struct span key = { stripe->reports[i].start_ns,
					    stripe->reports[i].duration_ns };
			const struct span *found =
				bsearch(&key, spans, count, sizeof(*spans), span_order);
			int64_t number;

			assert(found);
			number = found - spans;
			if (begins_run(stripe, i, first)) {
				expected = run_first;
				run_first = number;
			}
			strbuf_add_zigzag(out, number - expected);
			expected = number + 1;
		}
		first = end;
	}
}

/* In units of the column's number: how much more than one per row. */
static uint64_t excess_of(const struct part_stripe *stripe, const struct part_stripe_report *report,
			  uint32_t column, const struct column_code *code)
{
	int64_t total = part_clamp(sum_of(stripe, report, column));

	assert(code->number);
	return (uint64_t)(total / code->number) - report->row_count;
}

static bool has_totals(const struct column_code *code)
{
	return code->mode == PART_COLUMN_VALUES || code->mode == PART_COLUMN_COUNTS;
}

/* Rows, and the excess of the first column if it has one of its own. */
static void encode_row_counts(const struct part_stripe *stripe, const struct column_code *code,
			      struct part_chunk_builder *out)
{
	struct strbuf more = { 0 };

	for (uint32_t i = 0; i < stripe->reports_count; i++) {
		const struct part_stripe_report *report = &stripe->reports[i];
		uint64_t rows = report->row_count;
		uint64_t excess = has_totals(code) ? excess_of(stripe, report, 0, code) : 0;
		uint64_t low = rows < PART_NIBBLE_MORE ? rows : PART_NIBBLE_MORE;
		uint64_t high = excess < PART_NIBBLE_MORE ? excess : PART_NIBBLE_MORE;

		strbuf_add_byte(&out->raw, (char)(low | high << 4));
		if (low == PART_NIBBLE_MORE)
			strbuf_add_varint(&more, rows - low);
		if (high == PART_NIBBLE_MORE)
			strbuf_add_zigzag(&more, (int64_t)excess);
	}
	part_chunk_cut(out, STREAM_BYTES_MIN);
	strbuf_add_slice(&out->raw, strbuf_slice(&more));
	part_chunk_cut(out, STREAM_BYTES_MIN);
	strbuf_free(&more);
}

static void encode_totals(const struct part_stripe *stripe, const struct column_code *codes,
			  struct part_chunk_builder *out)
{
	for (uint32_t column = 1; column < stripe->columns; column++) {
		if (!has_totals(&codes[column]))
			continue;
		for (uint32_t i = 0; i < stripe->reports_count; i++)
			strbuf_add_zigzag(&out->raw, (int64_t)excess_of(stripe, &stripe->reports[i],
									column, &codes[column]));
		part_chunk_cut(out, STREAM_BYTES_MIN);
	}
}

static void encode_rollup(const struct part_stripe *stripe, struct strbuf *out)
{
	for (uint32_t i = 0; i < stripe->reports_count; i++)
		strbuf_add_varint(out, stripe->reports[i].reports_count);
	for (uint32_t i = 0; i < stripe->reports_count; i++)
		strbuf_add_zigzag(out, (int64_t)((uint64_t)stripe->reports[i].end_ns -
						 (uint64_t)stripe->reports[i].start_ns));
}

static void encode_headers(const struct part_stripe *stripe, const struct column_code *codes,
			   struct part_chunk_builder *out)
{
	struct span *spans = mem_new_array(struct span, stripe->reports_count);
	uint32_t spans_count = collect_spans(stripe, spans);
	struct strbuf *raw = &out->raw;

	strbuf_add_varint(raw, (stripe->has_labels ? PART_STRIPE_LABELS : 0u) |
				       (stripe->is_rollup ? PART_STRIPE_ROLLUP : 0u));
	strbuf_add_varint(raw, stripe->blocks_count);
	for (uint32_t i = 0; i < stripe->blocks_count; i++)
		strbuf_add_varint(raw, stripe->blocks[i]);
	for (uint32_t i = 0; i < stripe->columns; i++) {
		strbuf_add_varint(raw, codes[i].mode);
		strbuf_add_zigzag(raw, codes[i].number);
	}
	encode_series(stripe, raw);
	encode_spans(spans, spans_count, raw);
	part_chunk_cut(out, STREAM_BYTES_MIN);
	encode_span_numbers(stripe, spans, spans_count, raw);
	part_chunk_cut(out, STREAM_BYTES_MIN);
	encode_row_counts(stripe, &codes[0], out);
	encode_totals(stripe, codes, out);
	if (stripe->is_rollup)
		encode_rollup(stripe, raw);
	free(spans);
}

/* Rows. */

struct streams {
	struct strbuf bytes[PART_STREAMS];
	size_t strata_ends[STRATA_MAX];
	uint32_t strata;
};

/* The gap of each row, and the further bytes, in the order of rows. */
static void make_gaps(const struct part_stripe *stripe, uint8_t *to, struct strbuf *more)
{
	for (uint32_t i = 0; i < stripe->reports_count; i++) {
		const struct part_stripe_report *report = &stripe->reports[i];
		uint32_t previous = 0;

		for (uint64_t j = 0; j < report->row_count; j++) {
			uint32_t rank = stripe->ranks[report->row_first + j];
			uint32_t gap = rank - previous, wide = gap - PART_GAP_WIDE;

			previous = rank;
			if (gap < PART_GAP_WIDE) {
				*to++ = (uint8_t)gap;
			} else if (gap <= PART_GAP_SHORT_MAX) {
				*to++ = (uint8_t)(PART_GAP_WIDE + (wide >> 8));
				strbuf_add_byte(more, (char)(wide & 0xff));
			} else {
				*to++ = PART_GAP_LONG;
				strbuf_add_u32(more, gap);
			}
		}
	}
}

/* What an entropy coder makes of the bytes that were counted, and the cost of its table. */
static double bytes_coded(const uint32_t counts[256])
{
	uint32_t total = 0;
	double bits = 0;

	for (int i = 0; i < 256; i++)
		total += counts[i];
	for (int i = 0; i < 256; i++)
		if (counts[i])
			bits += counts[i] * log2((double)total / counts[i]) + TABLE_BITS;
	return bits / 8;
}

static double bytes_in_strata(const struct part_stripe *stripe, const uint8_t *gaps,
			      uint32_t strata)
{
	uint32_t counts[STRATA_MAX][256] = { 0 };
	double bytes = 0;

	for (uint32_t i = 0; i < stripe->reports_count; i++) {
		const struct part_stripe_report *report = &stripe->reports[i];
		uint32_t row = 0;

		for (uint32_t j = 0; j < strata; j++) {
			uint32_t end = part_stratum_begin(report->row_count, j + 1, strata);

			for (; row < end; row++)
				counts[j][gaps[report->row_first + row]]++;
		}
	}
	for (uint32_t j = 0; j < strata; j++)
		bytes += bytes_coded(counts[j]);
	return bytes;
}

static uint32_t best_strata(const struct part_stripe *stripe, const uint8_t *gaps)
{
	double least = bytes_in_strata(stripe, gaps, 1);
	uint32_t best = 1;

	for (uint32_t strata = 2; strata <= STRATA_MAX; strata *= 2) {
		double bytes = bytes_in_strata(stripe, gaps, strata);

		if (bytes >= least)
			break;
		least = bytes;
		best = strata;
	}
	return best;
}

static void encode_gaps(const struct part_stripe *stripe, struct streams *streams)
{
	struct strbuf *out = &streams->bytes[PART_STREAM_GAPS];
	uint8_t *gaps = mem_realloc(NULL, stripe->rows_count + 1, 1);

	make_gaps(stripe, gaps, &streams->bytes[PART_STREAM_GAP_BYTES]);
	streams->strata = best_strata(stripe, gaps);
	for (uint32_t j = 0; j < streams->strata; j++) {
		for (uint32_t i = 0; i < stripe->reports_count; i++) {
			const struct part_stripe_report *report = &stripe->reports[i];
			uint32_t begin = part_stratum_begin(report->row_count, j, streams->strata);
			uint32_t end =
				part_stratum_begin(report->row_count, j + 1, streams->strata);

			strbuf_add(out, gaps + report->row_first + begin, end - begin);
		}
		streams->strata_ends[j] = out->len;
	}
	assert(out->len == stripe->rows_count);
	free(gaps);
}

static void encode_labels(const struct part_stripe *stripe, struct strbuf *out)
{
	for (uint64_t i = 0, run; i < stripe->rows_count; i += run) {
		uint32_t label_set = stripe->label_sets[i];

		for (run = 1; i + run < stripe->rows_count; run++)
			if (stripe->label_sets[i + run] != label_set)
				break;
		strbuf_add_varint(out, label_set);
		strbuf_add_varint(out, run);
	}
}

/* True if the values of a report follow from its total. */
static bool is_told(const struct part_stripe *stripe, const struct part_stripe_report *report,
		    uint32_t column, const struct column_code *code)
{
	return code->mode == PART_COLUMN_COUNTS &&
	       (report->row_count == 1 || !excess_of(stripe, report, column, code));
}

static void encode_column(const struct part_stripe *stripe, uint32_t column,
			  const struct column_code *code, struct strbuf *distances,
			  struct strbuf *values)
{
	uint64_t ones = 0; /* since the last value */

	for (uint32_t i = 0; i < stripe->reports_count; i++) {
		const struct part_stripe_report *report = &stripe->reports[i];

		if (is_told(stripe, report, column, code))
			continue;
		for (uint64_t j = 0; j < report->row_count; j++) {
			int64_t value =
				value_at(stripe, report->row_first + j, column) / code->number;

			if (value == 1) {
				ones++;
				continue;
			}
			strbuf_add_varint(distances, ones);
			strbuf_add_zigzag(values, value);
			ones = 0;
		}
	}
}

static void write_gaps(const struct streams *streams, struct part_chunk_builder *out)
{
	const char *gaps = streams->bytes[PART_STREAM_GAPS].data;
	size_t begin = 0;

	for (uint32_t i = 0; i < streams->strata; i++) {
		strbuf_add(&out->raw, gaps + begin, streams->strata_ends[i] - begin);
		part_chunk_cut(out, STREAM_BYTES_MIN);
		begin = streams->strata_ends[i];
	}
	assert(begin == streams->bytes[PART_STREAM_GAPS].len);
}

static void write_streams(struct streams *streams, struct part_chunk_builder *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < PART_STREAMS; i++)
		count += streams->bytes[i].len > 0;
	strbuf_add_varint(&out->raw, streams->strata);
	strbuf_add_varint(&out->raw, count);
	for (uint32_t i = 0; i < PART_STREAMS; i++) {
		if (!streams->bytes[i].len)
			continue;
		strbuf_add_varint(&out->raw, i);
		strbuf_add_varint(&out->raw, streams->bytes[i].len);
	}
	if (streams->bytes[PART_STREAM_GAPS].len)
		write_gaps(streams, out);
	for (uint32_t i = PART_STREAM_GAPS + 1; i < PART_STREAMS; i++) {
		strbuf_add_slice(&out->raw, strbuf_slice(&streams->bytes[i]));
		part_chunk_cut(out, STREAM_BYTES_MIN);
	}
	for (uint32_t i = 0; i < PART_STREAMS; i++)
		strbuf_free(&streams->bytes[i]);
}

static void encode_rows(const struct part_stripe *stripe, const struct column_code *codes,
			struct part_chunk_builder *out)
{
	struct streams streams = { 0 };

	encode_gaps(stripe, &streams);
	if (stripe->has_labels)
		encode_labels(stripe, &streams.bytes[PART_STREAM_LABELS]);
	for (uint32_t i = 0; i < stripe->columns; i++)
		if (has_totals(&codes[i]))
			encode_column(stripe, i, &codes[i],
				      &streams.bytes[PART_STREAM_COLUMNS + 2 * i],
				      &streams.bytes[PART_STREAM_COLUMNS + 2 * i + 1]);
	write_streams(&streams, out);
}

static void encode_moments(const struct part_stripe *stripe, struct part_chunk_builder *out)
{
	uint32_t *counts = mem_new_array(uint32_t, stripe->reports_count);

	for (uint32_t i = 0; i < stripe->reports_count; i++)
		counts[i] = stripe->reports[i].moment_count;
	part_moments_encode(&stripe->moments, counts, stripe->reports_count, out);
	free(counts);
}

void part_stripe_encode(struct part_stripe *stripe, struct part_chunk_builder *headers,
			struct part_chunk_builder *rows, struct part_chunk_builder *moments)
{
	struct column_code codes[TABLES_COLUMNS_PER_GROUP_MAX];

	assert(stripe->reports_count && stripe->columns <= TABLES_COLUMNS_PER_GROUP_MAX);
	assert(stripe->blocks_count <= stripe->reports_count);
	for (uint32_t i = 0; i < stripe->columns; i++)
		codes[i] = code_of(stripe, i);
	encode_headers(stripe, codes, headers);
	encode_rows(stripe, codes, rows);
	if (stripe->moments.count)
		encode_moments(stripe, moments);
	part_moments_clear(&stripe->moments);
	stripe->reports_count = 0;
	stripe->blocks_count = 0;
	stripe->rows_count = 0;
	stripe->has_labels = false;
	stripe->open = false;
}
