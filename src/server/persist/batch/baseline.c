/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/batch/baseline.h"

#include <assert.h>

#include "base/mem.h"
#include "server/persist/batch/append.h"

#define SERIES_MAX ((uint32_t)16 << 20)

static size_t baseline_bytes(const struct baseline *baseline)
{
	return sizeof(*baseline) + baseline->rows_count * (sizeof(*baseline->rows) +
							   baseline->columns * sizeof(int64_t));
}

static void baseline_free(struct baseline *baseline)
{
	free(baseline->rows);
	free(baseline->values);
}

void baselines_fini(struct baselines *baselines)
{
	for (uint32_t i = 0; i < baselines->count; i++)
		baseline_free(&baselines->items[i]);
	free(baselines->items);
	idmap_free(&baselines->map);
	*baselines = (struct baselines){ 0 };
}

void baselines_check(const struct baselines *baselines)
{
	assert(baselines->count <= baselines->capacity);
	assert(baselines->map.count == baselines->count);
	assert(baselines->bytes >= baselines->count * sizeof(struct baseline));
}

static bool series_equal(const void *context, uint32_t id, const void *key)
{
	const struct baselines *baselines = context;
	const struct identity *series = key;

	return identity_equal(baselines->items[id].series, *series);
}

static void forget_before(struct baselines *baselines, int64_t received_ns)
{
	uint32_t kept = 0;

	idmap_clear(&baselines->map);
	for (uint32_t i = 0; i < baselines->count; i++) {
		if (baselines->items[i].received_ns < received_ns) {
			assert(baselines->bytes >= baseline_bytes(&baselines->items[i]));
			baselines->bytes -= baseline_bytes(&baselines->items[i]);
			baseline_free(&baselines->items[i]);
			continue;
		}
		baselines->items[kept] = baselines->items[i];
		idmap_add(&baselines->map, baselines->items[kept].series.low, kept);
		kept++;
	}
	assert(kept <= baselines->count);
	baselines->count = kept;
}

void baselines_expire(struct baselines *baselines, int64_t now_ns)
{
	forget_before(baselines, now_ns - STORE_DEDUPE_NS);
}

static int time_order(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return (a > b) - (a < b);
}

/* Over the bound: the older half of the series goes, by the time they were last seen. */
static void shed(struct baselines *baselines)
{
	uint32_t before = baselines->count;
	int64_t *times = mem_new_array(int64_t, before);

	assert(before);
	for (uint32_t i = 0; i < before; i++)
		times[i] = baselines->items[i].received_ns;
	qsort(times, before, sizeof(*times), time_order);
	forget_before(baselines, times[before / 2] + 1);
	baselines->forgotten += before - baselines->count;
	free(times);
}

static struct baseline *find_or_add(struct baselines *baselines, struct identity series,
				    uint32_t columns)
{
	uint32_t id = idmap_find(&baselines->map, series.low, series_equal, baselines, &series);

	if (id != IDMAP_NONE)
		return &baselines->items[id];
	mem_grow(baselines->items, baselines->count, baselines->capacity);
	baselines->items[baselines->count] =
		(struct baseline){ .series = series, .start_ns = INT64_MIN, .columns = columns };
	idmap_add(&baselines->map, series.low, baselines->count);
	baselines->bytes += sizeof(struct baseline);
	return &baselines->items[baselines->count++];
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

/* Which columns have a smaller total than before, as bits. */
static uint32_t columns_reset(const struct baseline *baseline, const int64_t *values,
			      uint32_t rows_count)
{
	uint32_t reset = 0;

	assert(baseline->columns <= TABLES_COLUMNS_PER_GROUP_MAX);
	for (uint32_t column = 0; column < baseline->columns; column++) {
		int64_t before = 0, now = 0;

		for (uint32_t i = 0; i < baseline->rows_count; i++)
			before = add_saturating(before,
						baseline->values[i * baseline->columns + column]);
		for (uint32_t i = 0; i < rows_count; i++)
			now = add_saturating(now, values[(size_t)i * baseline->columns + column]);
		reset |= (uint32_t)(now < before) << column;
	}
	return reset;
}

static int64_t delta_of(int64_t now, int64_t before)
{
	int64_t delta;

	if (now < before || __builtin_sub_overflow(now, before, &delta))
		return now;
	return delta;
}

static void subtract(const struct baseline *baseline, const struct identity *rows,
		     uint32_t rows_count, int64_t *values)
{
	uint32_t reset = columns_reset(baseline, values, rows_count);
	uint32_t at = 0;

	for (uint32_t i = 0; i < rows_count; i++) {
		int64_t *row = &values[(size_t)i * baseline->columns];
		const int64_t *before;

		while (at < baseline->rows_count && identity_order(baseline->rows[at], rows[i]) < 0)
			at++;
		if (at == baseline->rows_count || !identity_equal(baseline->rows[at], rows[i]))
			continue;
		before = &baseline->values[(size_t)at * baseline->columns];
		for (uint32_t column = 0; column < baseline->columns; column++)
			if (!(reset & 1u << column))
				row[column] = delta_of(row[column], before[column]);
	}
}

static void *copy_of(const void *data, size_t count, size_t size)
{
	void *copy = mem_calloc(count, size);

	if (count)
		memcpy(copy, data, count * size);
	return copy;
}

enum baseline_outcome baselines_apply(struct baselines *baselines, struct identity series,
				      int64_t start_ns, int64_t received_ns, uint32_t columns,
				      const struct identity *rows, uint32_t rows_count,
				      int64_t *values, int64_t *ret_elapsed_ns)
{
	struct baseline *baseline = find_or_add(baselines, series, columns);
	bool known = baseline->start_ns != INT64_MIN &&
		     baseline->received_ns > received_ns - STORE_DEDUPE_NS;
	bool elsewhere = baseline->elsewhere;
	struct baseline newest = *baseline;

	assert(columns && columns <= TABLES_COLUMNS_PER_GROUP_MAX);
	assert(baseline->columns == columns); /* the columns are part of the identity */
	if (known && start_ns <= baseline->start_ns)
		return BASELINE_LATE;
	newest.start_ns = start_ns;
	newest.received_ns = received_ns;
	newest.elsewhere = false;
	newest.rows_count = rows_count;
	newest.rows = copy_of(rows, rows_count, sizeof(*rows));
	newest.values = copy_of(values, (size_t)rows_count * columns, sizeof(*values));
	if (known) {
		subtract(baseline, rows, rows_count, values);
		if (__builtin_sub_overflow(start_ns, baseline->start_ns, ret_elapsed_ns))
			*ret_elapsed_ns = INT64_MAX;
	}
	assert(baselines->bytes >= baseline_bytes(baseline));
	baselines->bytes -= baseline_bytes(baseline);
	baseline_free(baseline);
	*baseline = newest;
	baselines->bytes += baseline_bytes(baseline);
	if (baselines->bytes > BASELINE_BYTES_MAX)
		shed(baselines);
	if (known)
		return BASELINE_DELTA;
	return elsewhere ? BASELINE_LATE : BASELINE_FIRST;
}

void baselines_taken_elsewhere(struct baselines *baselines, struct identity series, int64_t at_ns,
			       uint32_t columns)
{
	struct baseline *baseline = find_or_add(baselines, series, columns);

	if (baseline->start_ns >= at_ns)
		return;
	baseline->start_ns = INT64_MIN;
	baseline->elsewhere = true;
}

void baselines_encode(const struct baselines *baselines, struct strbuf *out)
{
	baselines_check(baselines);
	strbuf_add_varint(out, baselines->count);
	for (uint32_t i = 0; i < baselines->count; i++) {
		const struct baseline *baseline = &baselines->items[i];

		strbuf_add_u64(out, baseline->series.low);
		strbuf_add_u64(out, baseline->series.high);
		strbuf_add_zigzag(out, baseline->start_ns);
		strbuf_add_zigzag(out, baseline->received_ns);
		strbuf_add_varint(out, baseline->columns);
		strbuf_add_varint(out, baseline->rows_count);
		for (uint32_t j = 0; j < baseline->rows_count; j++) {
			strbuf_add_u64(out, baseline->rows[j].low);
			strbuf_add_u64(out, baseline->rows[j].high);
		}
		for (uint32_t j = 0; j < baseline->rows_count * baseline->columns; j++)
			strbuf_add_zigzag(out, baseline->values[j]);
	}
}

static bool take_rows(struct baseline *baseline, struct byte_reader *in)
{
	size_t values = (size_t)baseline->rows_count * baseline->columns;

	if (!baseline->columns || baseline->columns > TABLES_COLUMNS_PER_GROUP_MAX ||
	    baseline->rows_count > byte_reader_left(in) / sizeof(struct identity))
		return false;
	baseline->rows = mem_new_array(struct identity, baseline->rows_count);
	baseline->values = mem_new_array(int64_t, values);
	for (uint32_t i = 0; i < baseline->rows_count; i++) {
		baseline->rows[i].low = byte_reader_u64(in);
		baseline->rows[i].high = byte_reader_u64(in);
		if (i && identity_order(baseline->rows[i - 1], baseline->rows[i]) >= 0)
			return false;
	}
	for (size_t i = 0; i < values; i++)
		baseline->values[i] = byte_reader_zigzag(in);
	return !in->failed;
}

bool baselines_decode(struct baselines *baselines, struct byte_reader *in)
{
	uint64_t count = byte_reader_varint(in);

	assert(!baselines->count);
	for (uint64_t i = 0; i < count; i++) {
		struct identity series;
		struct baseline *baseline;
		struct baseline found = { 0 };

		series.low = byte_reader_u64(in);
		series.high = byte_reader_u64(in);
		found.start_ns = byte_reader_zigzag(in);
		found.received_ns = byte_reader_zigzag(in);
		found.columns = byte_reader_varint32(in);
		found.rows_count = byte_reader_varint32(in);
		if (in->failed || baselines->count >= SERIES_MAX || found.received_ns < 0 ||
		    found.received_ns == INT64_MAX)
			return false;
		found.series = series;
		baseline = find_or_add(baselines, series, found.columns);
		if (baseline->start_ns != INT64_MIN || found.start_ns == INT64_MIN)
			return false; /* twice */
		*baseline = found;
		if (!take_rows(baseline, in))
			return false;
		baselines->bytes += baseline_bytes(baseline) - sizeof(*baseline);
	}
	return true;
}
