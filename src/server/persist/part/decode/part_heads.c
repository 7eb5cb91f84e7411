/* SPDX-License-Identifier: Apache-2.0 */
/* Loops keep their reader in a local: what they store must not make the compiler read it again. */
#include "server/persist/part/decode/part_heads.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/disk/byte_reader.h"

static int corrupt(const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "stripe: %s", what);
}

void part_heads_free(struct part_heads *heads)
{
	free(heads->runs);
	free(heads->starts_ns);
	free(heads->durations_ns);
	free(heads->ends_ns);
	free(heads->row_counts);
	free(heads->totals);
	free(heads->reports_counts);
	free(heads->blocks);
	*heads = (struct part_heads){ 0 };
}

size_t part_heads_bytes(const struct part_heads *heads)
{
	size_t per_report = sizeof(*heads->runs) + 2 * sizeof(int64_t) * 3 + 3 * sizeof(uint32_t);

	return heads->reports_capacity * per_report + heads->totals_capacity * sizeof(int64_t);
}

static void make_room(struct part_heads *heads)
{
	uint32_t reports = heads->shape.reports;
	size_t totals = (size_t)reports * heads->shape.columns, times = (size_t)reports * 2;

	if (heads->totals_capacity < totals) {
		heads->totals_capacity = totals;
		heads->totals = mem_realloc(heads->totals, totals, sizeof(int64_t));
	}
	if (heads->reports_capacity >= reports)
		return;
	heads->reports_capacity = reports;
	heads->runs = mem_realloc(heads->runs, reports, sizeof(*heads->runs));
	heads->starts_ns = mem_realloc(heads->starts_ns, times, sizeof(int64_t));
	heads->durations_ns = mem_realloc(heads->durations_ns, times, sizeof(int64_t));
	heads->ends_ns = mem_realloc(heads->ends_ns, times, sizeof(int64_t));
	heads->row_counts = mem_realloc(heads->row_counts, reports, sizeof(uint32_t));
	heads->reports_counts = mem_realloc(heads->reports_counts, reports, sizeof(uint32_t));
	heads->blocks = mem_realloc(heads->blocks, reports, sizeof(uint32_t));
}

static int read_shape(struct byte_reader *in, struct part_heads *heads, uint32_t *ret_blocks,
		      struct err *err)
{
	uint64_t flags = byte_reader_varint(in), blocks = byte_reader_varint(in), reports = 0;

	if (flags & ~(uint64_t)PART_STRIPE_FLAGS)
		return err_set(err, ERR_UNSUPPORTED, "stripe: flags %llx",
			       (unsigned long long)flags);
	if (blocks > heads->shape.reports)
		return corrupt("more blocks than reports", err);
	heads->has_labels = flags & PART_STRIPE_LABELS;
	heads->is_rollup = flags & PART_STRIPE_ROLLUP;
	for (uint32_t i = 0; i < blocks; i++) {
		heads->blocks[i] = byte_reader_varint32(in);
		reports += heads->blocks[i];
	}
	if (in->failed || reports != heads->shape.reports)
		return corrupt("blocks have other reports than the stripe", err);
	*ret_blocks = (uint32_t)blocks;
	return 0;
}

static int read_columns(struct byte_reader *in, struct part_heads *heads, struct err *err)
{
	for (uint32_t i = 0; i < heads->shape.columns; i++) {
		struct part_column_code *column = &heads->columns[i];
		uint64_t mode = byte_reader_varint(in);

		if (mode >= PART_COLUMN_MODES || (mode == PART_COLUMN_PROPORTIONAL && !i))
			return corrupt("a column has an unknown encoding", err);
		column->mode = (enum part_column_mode)mode;
		column->number = byte_reader_zigzag(in);
	}
	return in->failed ? corrupt("columns end early", err) : 0;
}

static int read_series(struct byte_reader *in, struct part_heads *heads, uint32_t blocks,
		       struct err *err)
{
	uint32_t at = 0;

	heads->runs_count = 0;
	for (uint32_t block = 0; block < blocks; block++) {
		uint32_t end = at + heads->blocks[block];
		uint64_t series = 0;

		while (at < end) {
			uint64_t count;

			series += byte_reader_varint32(in);
			count = (uint64_t)byte_reader_varint32(in) + 1;
			if (in->failed || series > UINT32_MAX || count > end - at)
				return corrupt("runs of series", err);
			heads->runs[heads->runs_count++] = (struct segment_run){
				.series = (uint32_t)series, .count = (uint32_t)count, .first = at
			};
			at += (uint32_t)count;
			series++;
		}
	}
	assert(at == heads->shape.reports && heads->runs_count <= heads->reports_capacity);
	return 0;
}

/* Numbers of one byte that are 0 come in crowds: that many are looked at together. */
#define CROWD 8u

static bool is_crowd(const struct byte_reader *in, uint64_t left)
{
	return left >= CROWD && !byte_reader_peek(in);
}

/* A start that is so much later, no matter how often within a crowd, is later without wrapping. */
#define GAP_MAX ((uint64_t)1 << 59)

/* True if they ascend. */
static bool read_starts(struct byte_reader *reader, int64_t *starts_ns, uint64_t count)
{
	struct byte_reader in = *reader;
	uint64_t start = (uint64_t)byte_reader_zigzag(&in), step = byte_reader_varint(&in);
	uint64_t least = byte_reader_varint(&in), gap = least * step;
	bool ascend = true;

	if (count)
		starts_ns[0] = (int64_t)start;
	for (uint64_t i = 1; i < count;) {
		uint64_t before = start;

		if (gap < GAP_MAX && is_crowd(&in, count - i)) {
			for (uint64_t end = i + CROWD; i < end; i++)
				starts_ns[i] = (int64_t)(start += gap);
			in.at += CROWD;
		} else {
			start += gap + byte_reader_varint(&in) * step;
			ascend &= start - before <= INT64_MAX;
			starts_ns[i++] = (int64_t)start;
		}
		ascend &= (int64_t)start >= (int64_t)before;
	}
	*reader = in;
	return ascend;
}

static void read_durations(struct byte_reader *reader, bool until_next, struct part_heads *heads)
{
	const int64_t *starts_ns = heads->starts_ns;
	uint64_t count = heads->spans_count, duration = 0;
	int64_t *durations_ns = heads->durations_ns, longest_ns = INT64_MIN;
	struct byte_reader in = *reader;

	for (uint64_t i = 0; i < count;) {
		if (i && !until_next && is_crowd(&in, count - i)) {
			for (uint64_t end = i + CROWD; i < end; i++)
				durations_ns[i] = (int64_t)duration;
			in.at += CROWD;
			continue;
		}
		if (until_next && i + 1 < count)
			duration = (uint64_t)starts_ns[i + 1] - (uint64_t)starts_ns[i];
		duration += (uint64_t)byte_reader_zigzag(&in);
		durations_ns[i++] = (int64_t)duration;
		longest_ns = (int64_t)duration > longest_ns ? (int64_t)duration : longest_ns;
	}
	heads->longest_ns = longest_ns;
	*reader = in;
}

#define TIME_MAX ((int64_t)1 << 61) /* sums and differences of such times do not overflow */

/* Held to the ends of int64; times that may need it are rare, and not looked at further. */
static void find_ends(struct part_heads *heads)
{
	const int64_t *starts_ns = heads->starts_ns, *durations_ns = heads->durations_ns;
	uint32_t count = heads->spans_count;
	int64_t *ends_ns = heads->ends_ns;
	uint64_t bits = 0, descends = 0;

	for (uint32_t i = 0; i < count; i++) {
		bits |= (uint64_t)durations_ns[i];
		ends_ns[i] = (int64_t)((uint64_t)starts_ns[i] + (uint64_t)durations_ns[i]);
	}
	heads->ends_ascend = false;
	if (count && starts_ns[0] > -TIME_MAX && starts_ns[count - 1] < TIME_MAX &&
	    bits < (uint64_t)TIME_MAX) {
		for (uint32_t i = 1; i < count; i++)
			descends |= (uint64_t)ends_ns[i] - (uint64_t)ends_ns[i - 1];
		heads->ends_ascend = !(descends >> 63);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		ends_ns[i] = part_clamp((__int128)starts_ns[i] + durations_ns[i]);
}

static int read_spans(struct byte_reader *in, struct part_heads *heads, struct err *err)
{
	uint64_t count = byte_reader_varint(in), until_next;

	if (in->failed || count > heads->shape.reports)
		return corrupt("more spans than reports", err);
	heads->spans_count = (uint32_t)count;
	heads->times_count = (uint32_t)count;
	if (!read_starts(in, heads->starts_ns, count))
		return corrupt("spans are not in order", err);
	until_next = byte_reader_fixed(in, 1);
	if (until_next > 1)
		return corrupt("spans have an unknown form", err);
	read_durations(in, until_next, heads);
	find_ends(heads);
	return in->failed ? corrupt("spans end early", err) : 0;
}

/* Passes the numbers of a run's further reports if all are 0: then each has the next span. */
static bool skip_regular(struct byte_reader *reader, uint64_t count)
{
	struct byte_reader in = *reader;

	while (is_crowd(&in, count)) {
		in.at += CROWD;
		count -= CROWD;
	}
	for (; count; count--)
		if (byte_reader_varint(&in))
			return false;
	*reader = in;
	return true;
}

/* The times of one report more, behind those of all spans. */
static void add_time(struct part_heads *heads, uint64_t span)
{
	uint32_t at = heads->times_count++;

	heads->starts_ns[at] = heads->starts_ns[span];
	heads->durations_ns[at] = heads->durations_ns[span];
	heads->ends_ns[at] = heads->ends_ns[span];
}

/* Roll-ups have ends, so times, of their own each. */
static bool read_run_spans(struct byte_reader *in, struct part_heads *heads,
			   struct segment_run *run, uint64_t first)
{
	uint64_t span = first, next;

	run->times = (uint32_t)first;
	run->ordered = heads->ends_ascend && !heads->is_rollup;
	if (!heads->is_rollup && skip_regular(in, run->count - 1))
		return first < heads->spans_count && run->count <= heads->spans_count - first;
	run->times = heads->times_count;
	for (uint32_t left = run->count;; span = next) {
		if (span >= heads->spans_count)
			return false;
		add_time(heads, span);
		if (!--left)
			return true;
		next = span + 1 + (uint64_t)byte_reader_zigzag(in);
		run->ordered &= next >= span;
	}
}

static int read_span_numbers(struct byte_reader *reader, struct part_heads *heads, struct err *err)
{
	struct byte_reader in = *reader;
	uint64_t first = 0;

	for (uint32_t i = 0; i < heads->runs_count; i++) {
		first += (uint64_t)byte_reader_zigzag(&in);
		if (!read_run_spans(&in, heads, &heads->runs[i], first))
			return corrupt("a report lies in no span", err);
	}
	assert(heads->times_count <= 2 * (uint64_t)heads->reports_capacity);
	*reader = in;
	return in.failed ? corrupt("numbers of spans end early", err) : 0;
}

static int64_t multiply(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* One per row and the excess, in units of the column's number. */
static int64_t total_of(const struct part_column_code *code, uint32_t rows, uint64_t excess)
{
	return multiply((int64_t)(excess + rows), code->number);
}

/* What the bytes alone say: most of it. */
static void read_nibbles(const uint8_t *bytes, struct part_heads *heads)
{
	const struct part_column_code code = heads->columns[0];
	uint32_t reports = heads->shape.reports, columns = heads->shape.columns;
	uint32_t *row_counts = heads->row_counts;
	int64_t *totals = heads->totals;

	for (uint32_t i = 0; i < reports; i++)
		row_counts[i] = bytes[i] & PART_NIBBLE_MORE;
	for (uint32_t i = 0; columns == 1 && i < reports; i++)
		totals[i] = (bytes[i] & PART_NIBBLE_MORE) + (bytes[i] >> 4);
	if (columns == 1 && code.number == 1)
		return;
	for (uint32_t i = 0; i < reports; i++)
		totals[(size_t)i * columns] =
			total_of(&code, bytes[i] & PART_NIBBLE_MORE, bytes[i] >> 4);
}

static void read_more(struct byte_reader *in, uint8_t byte, uint32_t report,
		      struct part_heads *heads)
{
	uint64_t count = byte & PART_NIBBLE_MORE, excess = byte >> 4;

	if (count == PART_NIBBLE_MORE) {
		count += byte_reader_varint32(in);
		in->failed |= count > UINT32_MAX;
	}
	if (excess == PART_NIBBLE_MORE)
		excess = (uint64_t)byte_reader_zigzag(in);
	heads->row_counts[report] = (uint32_t)count;
	heads->totals[(size_t)report * heads->shape.columns] =
		total_of(&heads->columns[0], (uint32_t)count, excess);
}

#define NIBBLES 0x1111111111111111u /* the lowest bit of each */

/* And the totals of column 0, if it has some of its own. */
static int read_row_counts(struct byte_reader *reader, struct part_heads *heads, struct err *err)
{
	uint32_t reports = heads->shape.reports;
	struct slice bytes = byte_reader_bytes(reader, reports);
	const uint8_t *data = (const uint8_t *)bytes.data;
	struct byte_reader in = *reader;
	uint64_t rows = 0;

	if (in.failed)
		return corrupt("numbers of rows end early", err);
	read_nibbles(data, heads);
	for (uint32_t at = 0; at < reports; at += CROWD) {
		uint32_t count = reports - at < CROWD ? reports - at : CROWD;
		uint64_t word = 0;

		memcpy(&word, data + at, count);
		if (!(word & word >> 1 & word >> 2 & word >> 3 & NIBBLES))
			continue; /* no nibble says that there is more */
		for (uint32_t i = at; i < at + count; i++)
			read_more(&in, data[i], i, heads);
	}
	for (uint32_t i = 0; i < reports; i++)
		rows += heads->row_counts[i];
	*reader = in;
	if (in.failed || rows != heads->shape.rows)
		return corrupt("reports have other rows than the stripe", err);
	return 0;
}

static int read_totals(struct byte_reader *reader, struct part_heads *heads, struct err *err)
{
	struct byte_reader in = *reader;
	uint32_t columns = heads->shape.columns;

	for (uint32_t column = 0; column < columns; column++) {
		const struct part_column_code code = heads->columns[column];
		int64_t *totals = heads->totals;

		if (!column && part_column_has_totals(&code))
			continue;
		for (uint32_t i = 0; i < heads->shape.reports; i++, totals += columns) {
			uint32_t rows = heads->row_counts[i];

			if (code.mode == PART_COLUMN_CONSTANT)
				totals[column] = part_clamp((__int128)code.number * rows);
			else if (code.mode == PART_COLUMN_PROPORTIONAL)
				totals[column] = multiply(totals[0], code.number);
			else
				totals[column] =
					total_of(&code, rows, (uint64_t)byte_reader_zigzag(&in));
		}
	}
	*reader = in;
	return in.failed ? corrupt("totals end early", err) : 0;
}

static int read_rollup(struct byte_reader *in, struct part_heads *heads, struct err *err)
{
	const int64_t *starts_ns = heads->starts_ns + heads->spans_count;
	int64_t *ends_ns = heads->ends_ns + heads->spans_count;

	if (!heads->is_rollup)
		return 0;
	for (uint32_t i = 0; i < heads->shape.reports; i++)
		heads->reports_counts[i] = byte_reader_varint32(in);
	for (uint32_t i = 0; i < heads->shape.reports; i++)
		ends_ns[i] = (int64_t)((uint64_t)starts_ns[i] + (uint64_t)byte_reader_zigzag(in));
	return in->failed ? corrupt("fields of roll-ups end early", err) : 0;
}

int part_heads_decode(struct slice raw, const struct part_stripe_shape *shape,
		      struct part_heads *heads, struct err *err)
{
	struct byte_reader in = byte_reader_of(raw);
	uint32_t blocks = 0;
	int rc;

	heads->shape = *shape;
	if (!shape->columns || shape->columns > TABLES_COLUMNS_PER_GROUP_MAX ||
	    shape->reports > raw.len || shape->rows > PART_STRIPE_ROWS_MAX ||
	    shape->rows * shape->columns > PART_STRIPE_VALUES_MAX)
		return corrupt("has impossible sizes", err);
	make_room(heads);
	rc = read_shape(&in, heads, &blocks, err);
	if (!rc)
		rc = read_columns(&in, heads, err);
	if (!rc)
		rc = read_series(&in, heads, blocks, err);
	if (!rc)
		rc = read_spans(&in, heads, err);
	if (!rc)
		rc = read_span_numbers(&in, heads, err);
	if (!rc)
		rc = read_row_counts(&in, heads, err);
	if (!rc)
		rc = read_totals(&in, heads, err);
	if (!rc)
		rc = read_rollup(&in, heads, err);
	if (!rc && byte_reader_left(&in))
		rc = corrupt("has bytes after its headers", err);
	return rc;
}
