/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part_stripe_decode.h"

#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/byte_reader.h"

static int corrupt(const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "stripe: %s", what);
}

void part_stripe_image_free(struct part_stripe_image *image)
{
	free(image->reports);
	free(image->totals);
	free(image->last_slots);
	free(image->slots);
	free(image->label_sets);
	free(image->values);
	free(image->blocks);
	free(image->spans);
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

static void make_report_room(struct part_stripe_image *image)
{
	uint32_t reports = image->shape.reports;

	image->totals = room(image->totals, &image->totals_capacity,
			     (size_t)reports * image->shape.columns, sizeof(int64_t));
	if (image->reports_capacity >= reports)
		return;
	image->reports_capacity = reports;
	image->reports = mem_realloc(image->reports, reports, sizeof(*image->reports));
	image->last_slots = mem_realloc(image->last_slots, reports, sizeof(uint32_t));
	image->blocks = mem_realloc(image->blocks, reports, sizeof(uint32_t));
	image->spans = mem_realloc(image->spans, reports, sizeof(*image->spans));
}

/* Headers. */

static int read_shape(struct byte_reader *in, struct part_stripe_image *image, uint32_t *ret_blocks,
		      struct err *err)
{
	uint64_t flags = byte_reader_varint(in), blocks = byte_reader_varint(in), reports = 0;

	if (flags & ~(uint64_t)PART_STRIPE_FLAGS)
		return err_set(err, ERR_UNSUPPORTED, "stripe: flags %llx",
			       (unsigned long long)flags);
	if (blocks > image->shape.reports)
		return corrupt("more blocks than reports", err);
	image->has_labels = flags & PART_STRIPE_LABELS;
	image->is_rollup = flags & PART_STRIPE_ROLLUP;
	for (uint32_t i = 0; i < blocks; i++) {
		image->blocks[i] = byte_reader_varint32(in);
		reports += image->blocks[i];
	}
	if (in->failed || reports != image->shape.reports)
		return corrupt("blocks have other reports than the stripe", err);
	*ret_blocks = (uint32_t)blocks;
	return 0;
}

static int read_columns(struct byte_reader *in, struct part_stripe_image *image, struct err *err)
{
	image->has_values = false;
	for (uint32_t i = 0; i < image->shape.columns; i++) {
		struct part_column_code *column = &image->columns[i];
		uint64_t mode = byte_reader_varint(in);

		if (mode >= PART_COLUMN_MODES || (mode == PART_COLUMN_PROPORTIONAL && !i))
			return corrupt("a column is kept in no known way", err);
		column->mode = (enum part_column_mode)mode;
		column->number = byte_reader_zigzag(in);
		image->has_values |= mode != PART_COLUMN_CONSTANT || column->number != 1;
	}
	return in->failed ? corrupt("columns end early", err) : 0;
}

static int read_series(struct byte_reader *in, struct part_stripe_image *image, uint32_t blocks,
		       struct err *err)
{
	uint32_t at = 0;

	for (uint32_t block = 0; block < blocks; block++) {
		uint32_t end = at + image->blocks[block];
		uint64_t series = 0;

		while (at < end) {
			uint64_t run;

			series += byte_reader_varint32(in);
			run = (uint64_t)byte_reader_varint32(in) + 1;
			if (in->failed || series > UINT32_MAX || run > end - at)
				return corrupt("runs of series", err);
			for (; run; run--)
				image->reports[at++].series = (uint32_t)series;
			series++;
		}
	}
	return 0;
}

static int read_spans(struct byte_reader *in, struct part_stripe_image *image, uint32_t *ret_count,
		      struct err *err)
{
	uint64_t count = byte_reader_varint(in), start = 0, gap = 0, duration = 0;

	if (in->failed || count > image->shape.reports)
		return corrupt("more spans than reports", err);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t next = gap + (uint64_t)byte_reader_zigzag(in);

		start += next;
		gap = i ? next : 0;
		image->spans[i].start_ns = (int64_t)start;
	}
	for (uint32_t i = 0; i < count; i++) {
		duration += (uint64_t)byte_reader_zigzag(in);
		image->spans[i].duration_ns = (int64_t)duration;
	}
	*ret_count = (uint32_t)count;
	return in->failed ? corrupt("spans end early", err) : 0;
}

static int64_t end_of(const struct part_span *span)
{
	return part_clamp((__int128)span->start_ns + span->duration_ns);
}

static int read_span_numbers(struct byte_reader *in, struct part_stripe_image *image,
			     uint32_t blocks, uint32_t spans_count, struct err *err)
{
	uint64_t run_first = 0, expected = 0;
	uint32_t at = 0;

	for (uint32_t block = 0; block < blocks; block++) {
		uint32_t first = at, end = at + image->blocks[block];

		for (; at < end; at++) {
			struct segment_report *report = &image->reports[at];
			bool begins = at == first || report->series != report[-1].series;
			uint64_t number =
				(begins ? run_first : expected) + (uint64_t)byte_reader_zigzag(in);

			if (number >= spans_count)
				return corrupt("a report lies in no span", err);
			report->start_ns = image->spans[number].start_ns;
			report->duration_ns = image->spans[number].duration_ns;
			report->end_ns = end_of(&image->spans[number]);
			if (begins)
				run_first = number;
			expected = number + 1;
		}
	}
	return in->failed ? corrupt("numbers of spans end early", err) : 0;
}

static int read_row_counts(struct byte_reader *in, struct part_stripe_image *image, struct err *err)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; i < image->shape.reports; i++) {
		image->reports[i].row_count = byte_reader_varint32(in);
		image->reports[i].row_first = rows;
		image->reports[i].value_first = rows;
		image->reports[i].total_first = i * image->shape.columns;
		image->reports[i].reports_count = 1;
		rows += image->reports[i].row_count;
	}
	if (in->failed || rows != image->shape.rows)
		return corrupt("reports have other rows than the stripe", err);
	return 0;
}

static int64_t multiply(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int read_totals(struct byte_reader *in, struct part_stripe_image *image, struct err *err)
{
	uint32_t columns = image->shape.columns;

	for (uint32_t column = 0; column < columns; column++) {
		const struct part_column_code *code = &image->columns[column];

		for (uint32_t i = 0; i < image->shape.reports; i++) {
			int64_t *total = &image->totals[(size_t)i * columns + column];
			uint32_t rows = image->reports[i].row_count;

			if (code->mode == PART_COLUMN_CONSTANT)
				*total = part_clamp((__int128)code->number * rows);
			else if (code->mode == PART_COLUMN_PROPORTIONAL)
				*total = multiply(image->totals[(size_t)i * columns], code->number);
			else
				*total =
					multiply((int64_t)((uint64_t)byte_reader_zigzag(in) + rows),
						 code->number);
		}
	}
	return in->failed ? corrupt("totals end early", err) : 0;
}

static int read_rollup(struct byte_reader *in, struct part_stripe_image *image, struct err *err)
{
	if (!image->is_rollup)
		return 0;
	for (uint32_t i = 0; i < image->shape.reports; i++)
		image->reports[i].reports_count = byte_reader_varint32(in);
	for (uint32_t i = 0; i < image->shape.reports; i++)
		image->reports[i].end_ns = (int64_t)((uint64_t)image->reports[i].start_ns +
						     (uint64_t)byte_reader_zigzag(in));
	return in->failed ? corrupt("fields of roll-ups end early", err) : 0;
}

int part_stripe_decode_headers(struct slice raw, const struct part_stripe_shape *shape,
			       struct part_stripe_image *image, struct err *err)
{
	struct byte_reader in = byte_reader_of(raw);
	uint32_t blocks = 0, spans_count = 0;
	int rc;

	image->shape = *shape;
	if (!shape->columns || shape->columns > TABLES_COLUMNS_PER_GROUP_MAX ||
	    shape->reports > raw.len || shape->rows > PART_STRIPE_ROWS_MAX ||
	    shape->rows * shape->columns > PART_STRIPE_VALUES_MAX)
		return corrupt("has impossible sizes", err);
	make_report_room(image);
	rc = read_shape(&in, image, &blocks, err);
	if (!rc)
		rc = read_columns(&in, image, err);
	if (!rc)
		rc = read_series(&in, image, blocks, err);
	if (!rc)
		rc = read_spans(&in, image, &spans_count, err);
	if (!rc)
		rc = read_span_numbers(&in, image, blocks, spans_count, err);
	if (!rc)
		rc = read_row_counts(&in, image, err);
	if (!rc)
		rc = read_totals(&in, image, err);
	if (!rc)
		rc = read_rollup(&in, image, err);
	if (!rc && byte_reader_left(&in))
		rc = corrupt("has bytes behind its headers", err);
	return rc;
}

/* Rows. */

struct streams {
	struct slice bytes[PART_STREAMS];
};

static int find_streams(struct slice raw, struct streams *ret, struct err *err)
{
	struct byte_reader in = byte_reader_of(raw), table;
	uint64_t count = byte_reader_varint(&in);

	*ret = (struct streams){ 0 };
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

/* Vectorised by the compiler: bytes of the gap stream that have further ones, and how many. */
static uint64_t further_bytes(const uint8_t *gaps, uint64_t count)
{
	uint64_t wide = 0, longer = 0;

	for (uint64_t i = 0; i < count; i++) {
		wide += gaps[i] >= PART_GAP_WIDE;
		longer += gaps[i] == PART_GAP_LONG;
	}
	return wide + 3 * longer;
}

static uint32_t long_gap(const uint8_t *more)
{
	return more[0] | (uint32_t)more[1] << 8 | (uint32_t)more[2] << 16 | (uint32_t)more[3] << 24;
}

/*
 * One report; returns where its further bytes end. Without branches but for the rarest gaps: which
 * of the two common lengths a gap has is as good as random. Reads one byte past the end of `more`.
 */
static const uint8_t *decode_gaps(const uint8_t *gaps, const uint8_t *more, uint32_t count,
				  uint32_t *slots, uint64_t *ret_last)
{
	uint64_t rank = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t byte = gaps[i], wide = byte >= PART_GAP_WIDE;
		uint32_t rest = (byte - PART_GAP_WIDE) * 255u + *more;

		if (__builtin_expect(byte == PART_GAP_LONG, 0)) {
			rank += long_gap(more);
			more += 4;
		} else {
			rank += byte + (rest & -wide);
			more += wide;
		}
		slots[i] = (uint32_t)rank;
	}
	*ret_last = rank;
	return more;
}

static int decode_slots(const struct streams *streams, struct part_stripe_image *image,
			struct err *err)
{
	struct slice gaps = streams->bytes[PART_STREAM_GAPS];
	struct slice more = streams->bytes[PART_STREAM_GAP_BYTES];
	const uint8_t *gap_at = (const uint8_t *)gaps.data, *more_at = (const uint8_t *)more.data;
	/* Somewhere to read from when there is nothing. */
	static const uint8_t none[4];

	if (gaps.len != image->shape.rows || further_bytes(gap_at, gaps.len) != more.len)
		return corrupt("gaps of ranks have the wrong length", err);
	if (!more_at)
		more_at = none;
	image->slots = room(image->slots, &image->rows_capacity, gaps.len, sizeof(uint32_t));
	for (uint32_t i = 0; i < image->shape.reports; i++) {
		const struct segment_report *report = &image->reports[i];
		uint64_t last;

		more_at = decode_gaps(gap_at + report->row_first, more_at, report->row_count,
				      image->slots + report->row_first, &last);
		if (last > UINT32_MAX)
			return corrupt("a rank is too large", err);
		image->last_slots[i] = (uint32_t)last;
	}
	return 0;
}

static int decode_labels(struct slice bytes, struct part_stripe_image *image, struct err *err)
{
	struct byte_reader in = byte_reader_of(bytes);
	uint64_t rows = image->shape.rows;

	if (!image->has_labels)
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
	for (uint64_t i = 0; i < count; i++)
		values[i] = value;
}

/* One byte most of the time. */
static inline uint64_t short_varint(struct byte_reader *in)
{
	if (__builtin_expect(in->at < in->end && *in->at < 0x80, 1))
		return *in->at++;
	return byte_reader_varint(in);
}

static int decode_values(struct slice distances, struct slice others, int64_t divisor,
			 uint64_t rows, int64_t *values, struct err *err)
{
	struct byte_reader at = byte_reader_of(distances), in = byte_reader_of(others);
	uint64_t i = 0;

	fill(values, rows, divisor);
	while (at.at < at.end) {
		uint64_t distance = short_varint(&at), value = short_varint(&in);

		if (at.failed || in.failed || distance >= rows - i)
			return corrupt("values have the wrong length", err);
		i += distance;
		values[i++] = multiply((int64_t)((value >> 1) ^ (0 - (value & 1))), divisor);
	}
	return byte_reader_left(&in) ? corrupt("has too many values", err) : 0;
}

static int decode_columns(const struct streams *streams, struct part_stripe_image *image,
			  struct err *err)
{
	uint64_t rows = image->shape.rows;
	int rc = 0;

	if (!image->has_values)
		return 0;
	image->values = room(image->values, &image->values_capacity, rows * image->shape.columns,
			     sizeof(int64_t));
	for (uint32_t i = 0; i < image->shape.columns && !rc; i++) {
		const struct part_column_code *code = &image->columns[i];
		const struct slice *bytes = &streams->bytes[PART_STREAM_COLUMNS + 2 * i];
		int64_t *values = image->values + i * rows;

		if (code->mode == PART_COLUMN_CONSTANT)
			fill(values, rows, code->number);
		else if (code->mode == PART_COLUMN_VALUES)
			rc = decode_values(bytes[0], bytes[1], code->number, rows, values, err);
		else
			for (uint64_t j = 0; j < rows; j++)
				values[j] = multiply(image->values[j], code->number);
	}
	return rc;
}

static int decode_nothing(const struct streams *streams, struct part_stripe_image *image,
			  struct err *err)
{
	for (uint32_t i = 0; i < PART_STREAMS; i++)
		if (streams->bytes[i].len)
			return corrupt("has streams but no rows", err);
	memset(image->last_slots, 0, image->shape.reports * sizeof(uint32_t));
	return 0;
}

int part_stripe_decode_rows(struct slice raw, struct part_stripe_image *image, struct err *err)
{
	struct streams streams;
	int rc = find_streams(raw, &streams, err);

	if (!rc && !image->shape.rows)
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
	uint32_t columns = image->shape.columns;

	for (uint32_t i = 0; i < image->shape.reports; i++) {
		const struct segment_report *report = &image->reports[i];

		for (uint32_t column = 0; column < columns; column++) {
			const int64_t *values =
				image->has_values ? image->values + column * image->shape.rows +
							    report->row_first
						  : NULL;
			__int128 sum = 0;

			for (uint32_t j = 0; j < report->row_count; j++)
				sum += values ? values[j] : 1;
			if (image->totals[(size_t)i * columns + column] != part_clamp(sum))
				return corrupt("a total is not the sum of its values", err);
		}
	}
	return 0;
}
