/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/decode/part_stripe_decode.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/disk/byte_reader.h"

static int corrupt(const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "stripe: %s", what);
}

void part_stripe_image_free(struct part_stripe_image *image)
{
	part_heads_free(&image->heads);
	free(image->reports);
	free(image->last_slots);
	free(image->slots);
	free(image->label_sets);
	free(image->values);
	*image = (struct part_stripe_image){ 0 };
}

/* Room for `count` elements; what was there is lost. NULL: none. */
static void *room(void *memory, size_t *capacity, size_t count, size_t element_bytes)
{
	if (*capacity >= count)
		return memory;
	free(memory);
	*capacity = count;
	return mem_realloc(NULL, count, element_bytes);
}

static int64_t multiply(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

int part_stripe_decode_headers(struct slice raw, const struct part_stripe_shape *shape,
			       struct part_stripe_image *image, struct err *err)
{
	const struct part_column_code *columns = image->heads.columns;
	int rc = part_heads_decode(raw, shape, &image->heads, err);

	image->has_reports = false;
	image->has_values = false;
	for (uint32_t i = 0; !rc && i < shape->columns; i++)
		image->has_values |=
			columns[i].mode != PART_COLUMN_CONSTANT || columns[i].number != 1;
	return rc;
}

void part_stripe_make_reports(struct part_stripe_image *image)
{
	const struct part_heads *heads = &image->heads;
	uint32_t count = heads->shape.reports;
	uint64_t rows = 0;

	if (image->has_reports)
		return;
	image->has_reports = true;
	if (image->reports_capacity < count) {
		image->reports_capacity = count;
		image->reports = mem_realloc(image->reports, count, sizeof(*image->reports));
		image->last_slots = mem_realloc(image->last_slots, count, sizeof(uint32_t));
	}
	for (uint32_t r = 0; r < heads->runs_count; r++) {
		const struct segment_run run = heads->runs[r];

		for (uint32_t i = 0; i < run.count; i++) {
			uint32_t at = run.first + i, time = run.times + i;

			image->reports[at] = (struct segment_report){
				.series = run.series,
				.row_count = heads->row_counts[at],
				.row_first = rows,
				.value_first = rows,
				.total_first = at * heads->shape.columns,
				.reports_count = heads->is_rollup ? heads->reports_counts[at] : 1,
				.start_ns = heads->starts_ns[time],
				.duration_ns = heads->durations_ns[time],
				.end_ns = heads->ends_ns[time],
			};
			rows += heads->row_counts[at];
		}
	}
	assert(rows == heads->shape.rows);
}

struct streams {
	struct slice bytes[PART_STREAMS];
	uint32_t strata;
};

static int find_streams(struct slice raw, struct streams *ret, struct err *err)
{
	struct byte_reader in = byte_reader_of(raw), table;
	uint64_t strata = byte_reader_varint(&in), count = byte_reader_varint(&in);

	if (!strata || strata > PART_STRATA_MAX)
		return corrupt("has too many strata", err);
	*ret = (struct streams){ .strata = (uint32_t)strata };
	table = in;
	for (uint64_t i = 0; i < count && !in.failed; i++) {
		byte_reader_varint(&in);
		byte_reader_varint(&in);
	}
	for (uint64_t i = 0; i < count && !in.failed; i++) {
		uint64_t kind = byte_reader_varint(&table);
		struct slice bytes = byte_reader_bytes(&in, byte_reader_varint(&table));

		if (kind < PART_STREAMS)
			ret->bytes[kind] = bytes;
	}
	if (in.failed || byte_reader_left(&in))
		return corrupt("streams are not as long as the rows", err);
	return 0;
}

typedef uint8_t bytes16 __attribute__((vector_size(16), aligned(1)));
typedef int64_t words2 __attribute__((vector_size(16), aligned(8)));

#define LANE_STEPS_MAX 255 /* before a lane of counts overflows */

static uint64_t sum_lanes(bytes16 lanes)
{
	uint64_t sum = 0;

	for (int i = 0; i < 16; i++)
		sum += lanes[i];
	return sum;
}

/* How many bytes there are of at least `least`. Masks of comparisons are -1 per lane. */
static uint64_t count_at_least(const uint8_t *bytes, uint64_t count, uint8_t least)
{
	uint64_t found = 0, i = 0;

	while (count - i >= 16) {
		bytes16 lanes = { 0 };

		for (int step = 0; step < LANE_STEPS_MAX && count - i >= 16; step++, i += 16)
			lanes -= (bytes16)(*(const bytes16 *)(bytes + i) >= least);
		found += sum_lanes(lanes);
	}
	for (; i < count; i++)
		found += bytes[i] >= least;
	return found;
}

static uint32_t long_gap(const uint8_t *more)
{
	return more[0] | (uint32_t)more[1] << 8 | (uint32_t)more[2] << 16 | (uint32_t)more[3] << 24;
}

/* Where a decoder of gaps stands. */
struct gaps {
	const uint8_t *more;
	uint64_t rank;
};

/*
 * Some rows of one report. Without branches but for long gaps, which are rare: which of the two
 * common lengths a gap has is as good as random. Reads one byte past the end of `more`.
 */
static inline __attribute__((always_inline)) void
decode_gaps(const uint8_t *bytes, uint32_t count, bool has_long, struct gaps *gaps, uint32_t *slots)
{
	const uint8_t *more = gaps->more;
	uint64_t rank = gaps->rank;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t byte = bytes[i], wide = byte >= PART_GAP_WIDE;
		uint32_t rest = (byte - PART_GAP_WIDE) * 255u + *more;

		if (has_long && __builtin_expect(byte == PART_GAP_LONG, 0)) {
			rank += long_gap(more);
			more += 4;
		} else {
			rank += byte + (rest & -wide);
			more += wide;
		}
		slots[i] = (uint32_t)rank;
	}
	*gaps = (struct gaps){ more, rank };
}

/*
 * How many rows of one report the strata have, one after the other: as part_stratum_begin says,
 * without a division for each.
 */
struct strata_of_report {
	uint32_t strata, whole, rest, over;
};

static inline struct strata_of_report strata_of(uint32_t rows, uint32_t strata)
{
	return (struct strata_of_report){ strata, rows / strata, rows % strata, strata - 1 };
}

static inline uint32_t next_stratum(struct strata_of_report *of)
{
	bool one_more;

	of->over += of->rest;
	one_more = of->over >= of->strata;
	of->over -= one_more ? of->strata : 0;
	return of->whole + one_more;
}

/* The same of many reports together: those with the same rest differ in what is whole only. */
struct strata_of_many {
	uint64_t whole;
	uint32_t rests[PART_STRATA_MAX]; /* how many reports have that rest */
};

static inline void add_to_strata(struct strata_of_many *many, uint32_t rows, uint32_t strata)
{
	many->whole += rows / strata;
	many->rests[rows % strata]++;
}

static void strata_sizes(const struct strata_of_many *many, uint32_t strata,
			 uint64_t ret[PART_STRATA_MAX])
{
	for (uint32_t j = 0; j < strata; j++)
		ret[j] = many->whole;
	for (uint32_t rest = 1; rest < strata; rest++) {
		struct strata_of_report of = strata_of(rest, strata);

		for (uint32_t j = 0; many->rests[rest] && j < strata; j++)
			ret[j] += (uint64_t)next_stratum(&of) * many->rests[rest];
	}
}

/* Where the strata begin among the gaps. */
static void find_strata(const struct part_stripe_image *image, const uint8_t *gaps, uint32_t strata,
			const uint8_t *ret[PART_STRATA_MAX])
{
	struct strata_of_many all = { 0 };
	uint64_t sizes[PART_STRATA_MAX];

	for (uint32_t i = 0; i < image->heads.shape.reports && strata > 1; i++)
		add_to_strata(&all, image->heads.row_counts[i], strata);
	strata_sizes(&all, strata, sizes);
	for (uint32_t j = 0; j < strata; j++) {
		ret[j] = gaps;
		gaps += sizes[j];
	}
}

static inline bool is_wanted(const struct part_stripe_image *image, uint32_t report)
{
	int64_t start_ns = image->reports[report].start_ns;

	return start_ns >= image->range.from_ns &&
	       (start_ns < image->range.to_ns || image->range.to_ns == INT64_MAX) &&
	       (start_ns < image->range.hole.from_ns || start_ns >= image->range.hole.to_ns);
}

/*
 * Passes over the rows of reports from `first` on that nobody wants; returns the next that is
 * wanted. Within a stratum they lie one behind the other, so their further bytes are counted many
 * at a time.
 */
static inline __attribute__((always_inline)) uint32_t
skip_reports(const struct part_stripe_image *image, uint32_t first, uint32_t strata, bool has_long,
	     const uint8_t *at[PART_STRATA_MAX], const uint8_t **more)
{
	struct strata_of_many skipped = { 0 };
	uint64_t sizes[PART_STRATA_MAX];
	uint32_t end = first;

	for (; end < image->heads.shape.reports && !is_wanted(image, end); end++) {
		add_to_strata(&skipped, image->heads.row_counts[end], strata);
		image->last_slots[end] = 0;
	}
	if (end == image->heads.shape.reports)
		return end; /* nobody asks where its rows end */
	strata_sizes(&skipped, strata, sizes);
	for (uint32_t j = 0; j < strata; j++) {
		*more += count_at_least(at[j], sizes[j], PART_GAP_WIDE);
		if (has_long)
			*more += 3 * count_at_least(at[j], sizes[j], PART_GAP_LONG);
		at[j] += sizes[j];
	}
	return end;
}

static inline __attribute__((always_inline)) int decode_reports(const struct streams *streams,
								bool has_long, const uint8_t *more,
								struct part_stripe_image *image,
								struct err *err)
{
	const uint8_t *at[PART_STRATA_MAX];

	find_strata(image, (const uint8_t *)streams->bytes[PART_STREAM_GAPS].data, streams->strata,
		    at);
	for (uint32_t i = 0; i < image->heads.shape.reports; i++) {
		const struct segment_report *report = &image->reports[i];
		struct strata_of_report of;
		struct gaps gaps = { more, 0 };
		uint32_t *slots = image->slots + report->row_first;

		if (!is_wanted(image, i)) {
			i = skip_reports(image, i, streams->strata, has_long, at, &more) - 1;
			continue;
		}
		of = strata_of(report->row_count, streams->strata);
		for (uint32_t j = 0; j < streams->strata; j++) {
			uint32_t count = next_stratum(&of);

			decode_gaps(at[j], count, has_long, &gaps, slots);
			at[j] += count;
			slots += count;
		}
		if (gaps.rank > UINT32_MAX)
			return corrupt("a rank is too large", err);
		image->last_slots[i] = (uint32_t)gaps.rank;
		more = gaps.more;
	}
	return 0;
}

static int decode_slots(const struct streams *streams, struct part_stripe_image *image,
			struct err *err)
{
	/* Somewhere to read from when there is nothing. */
	static const uint8_t none[1];
	struct slice gaps = streams->bytes[PART_STREAM_GAPS];
	struct slice more = streams->bytes[PART_STREAM_GAP_BYTES];
	const uint8_t *bytes = (const uint8_t *)gaps.data;
	const uint8_t *more_bytes = more.len ? (const uint8_t *)more.data : none;
	uint64_t longs;

	if (gaps.len != image->heads.shape.rows)
		return corrupt("has other gaps than rows", err);
	longs = count_at_least(bytes, gaps.len, PART_GAP_LONG);
	if (count_at_least(bytes, gaps.len, PART_GAP_WIDE) + 3 * longs != more.len)
		return corrupt("gaps of ranks have the wrong length", err);
	image->slots = room(image->slots, &image->rows_capacity, gaps.len, sizeof(uint32_t));
	return longs ? decode_reports(streams, true, more_bytes, image, err)
		     : decode_reports(streams, false, more_bytes, image, err);
}

static int decode_labels(struct slice bytes, struct part_stripe_image *image, struct err *err)
{
	struct byte_reader in = byte_reader_of(bytes);
	uint64_t rows = image->heads.shape.rows;

	if (!image->heads.has_labels)
		return bytes.len ? corrupt("has label sets that its headers deny", err) : 0;
	image->label_sets =
		room(image->label_sets, &image->labels_capacity, rows, sizeof(uint32_t));
	for (uint64_t i = 0; i < rows;) {
		uint32_t label_set = byte_reader_varint32(&in);
		uint64_t run = byte_reader_varint(&in);

		if (in.failed || !run || run > rows - i)
			return corrupt("runs of label sets", err);
		for (; run; run--)
			image->label_sets[i++] = label_set;
	}
	return byte_reader_left(&in) ? corrupt("has too many label sets", err) : 0;
}

static void fill(int64_t *values, uint64_t count, int64_t value)
{
	words2 two = { value, value };
	uint64_t i = 0;

	for (; count - i >= 2; i += 2)
		*(words2 *)(values + i) = two;
	if (i < count)
		values[i] = value;
}

static void fill_wanted(const struct part_stripe_image *image, int64_t *values, int64_t value)
{
	for (uint32_t i = 0; i < image->heads.shape.reports; i++)
		if (is_wanted(image, i))
			fill(values + image->reports[i].row_first, image->reports[i].row_count,
			     value);
}

/* Column 0, which all values of this one are multiples of. */
static void multiply_wanted(const struct part_stripe_image *image, int64_t *values, int64_t factor)
{
	for (uint32_t i = 0; i < image->heads.shape.reports; i++) {
		uint64_t begin = image->reports[i].row_first;

		for (uint64_t j = begin;
		     is_wanted(image, i) && j < begin + image->reports[i].row_count; j++)
			values[j] = multiply(image->values[j], factor);
	}
}

/* A walk through the values other than 1. */
struct others {
	struct byte_reader distances, values;
	uint64_t ones; /* before the next; UINT64_MAX when there is none */
	int64_t divisor;
};

static void find_next(struct others *others)
{
	others->ones = others->distances.at < others->distances.end
			       ? byte_reader_varint(&others->distances)
			       : UINT64_MAX;
}

static inline void decode_others(struct others *others, uint64_t rows, int64_t *values)
{
	uint64_t at = 0;

	while (others->ones < rows - at) {
		uint64_t value = byte_reader_varint(&others->values);

		at += others->ones;
		values[at++] =
			multiply((int64_t)((value >> 1) ^ (0 - (value & 1))), others->divisor);
		find_next(others);
	}
	if (others->ones != UINT64_MAX)
		others->ones -= rows - at;
}

/* As decode_others, of rows that nobody wants. */
static void skip_others(struct others *others, uint64_t rows)
{
	uint64_t at = 0, values = 0;

	for (; others->ones < rows - at; values++) {
		at += others->ones + 1;
		find_next(others);
	}
	if (others->ones != UINT64_MAX)
		others->ones -= rows - at;
	for (; values; values--)
		byte_reader_varint(&others->values);
}

/* Reports whose total says it all have nothing among the others. */
static void decode_counts(struct others *others, uint32_t column, struct part_stripe_image *image)
{
	uint32_t columns = image->heads.shape.columns;
	int64_t *values = image->values + column * image->heads.shape.rows;
	uint64_t unwanted = 0; /* rows since the last report that is wanted */

	for (uint32_t i = 0; i < image->heads.shape.reports; i++) {
		const struct segment_report *report = &image->reports[i];
		int64_t total = image->heads.totals[(size_t)i * columns + column];
		bool has_others = report->row_count != 1 &&
				  total != multiply(report->row_count, others->divisor);

		if (!is_wanted(image, i)) {
			unwanted += has_others ? report->row_count : 0;
		} else if (has_others) {
			skip_others(others, unwanted);
			unwanted = 0;
			decode_others(others, report->row_count, values + report->row_first);
		} else if (report->row_count == 1) {
			values[report->row_first] = total;
		}
	}
	skip_others(others, unwanted);
}

static int decode_values(const struct streams *streams, uint32_t column,
			 struct part_stripe_image *image, struct err *err)
{
	const struct slice *bytes = &streams->bytes[PART_STREAM_COLUMNS + 2 * column];
	const struct part_column_code *code = &image->heads.columns[column];
	int64_t *values = image->values + column * image->heads.shape.rows;
	struct others others = { .distances = byte_reader_of(bytes[0]),
				 .values = byte_reader_of(bytes[1]),
				 .divisor = code->number };

	fill_wanted(image, values, code->number);
	find_next(&others);
	if (code->mode == PART_COLUMN_COUNTS)
		decode_counts(&others, column, image);
	else
		decode_others(&others, image->heads.shape.rows, values);
	if (others.distances.failed || others.values.failed || others.ones != UINT64_MAX ||
	    byte_reader_left(&others.values))
		return corrupt("values have the wrong length", err);
	return 0;
}

static int decode_columns(const struct streams *streams, struct part_stripe_image *image,
			  struct err *err)
{
	uint64_t rows = image->heads.shape.rows;
	int rc = 0;

	if (!image->has_values)
		return 0;
	image->values = room(image->values, &image->values_capacity,
			     rows * image->heads.shape.columns, sizeof(int64_t));
	for (uint32_t i = 0; i < image->heads.shape.columns && !rc; i++) {
		const struct part_column_code *code = &image->heads.columns[i];
		int64_t *values = image->values + i * rows;

		if (code->mode == PART_COLUMN_CONSTANT)
			fill_wanted(image, values, code->number);
		else if (part_column_has_totals(code))
			rc = decode_values(streams, i, image, err);
		else
			multiply_wanted(image, values, code->number);
	}
	return rc;
}

static int decode_nothing(const struct streams *streams, struct part_stripe_image *image,
			  struct err *err)
{
	for (uint32_t i = 0; i < PART_STREAMS; i++)
		if (streams->bytes[i].len)
			return corrupt("has streams but no rows", err);
	memset(image->last_slots, 0, image->heads.shape.reports * sizeof(uint32_t));
	return 0;
}

int part_stripe_decode_rows(struct slice raw, struct part_stripe_range range,
			    struct part_stripe_image *image, struct err *err)
{
	struct streams streams;
	int rc = find_streams(raw, &streams, err);

	assert(image->has_reports);
	image->range = range;
	if (!rc && !image->heads.shape.rows)
		return decode_nothing(&streams, image, err);
	if (!rc)
		rc = decode_slots(&streams, image, err);
	if (!rc)
		rc = decode_labels(streams.bytes[PART_STREAM_LABELS], image, err);
	if (!rc)
		rc = decode_columns(&streams, image, err);
	return rc;
}

int part_stripe_check_totals(const struct part_stripe_image *image, struct err *err)
{
	uint32_t columns = image->heads.shape.columns;

	assert(image->has_reports);
	for (uint32_t i = 0; i < image->heads.shape.reports; i++) {
		const struct segment_report *report = &image->reports[i];

		for (uint32_t column = 0; column < columns; column++) {
			const int64_t *values = image->has_values
							? image->values +
								  column * image->heads.shape.rows +
								  report->row_first
							: NULL;
			__int128 sum = 0;

			for (uint32_t j = 0; j < report->row_count; j++)
				sum += values ? values[j] : 1;
			if (image->heads.totals[(size_t)i * columns + column] != part_clamp(sum))
				return corrupt("a total is not the sum of its values", err);
		}
	}
	return 0;
}
