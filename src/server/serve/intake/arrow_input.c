/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/intake/arrow_input.h"

#include <stdlib.h>

#include "base/budget.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "codec/wire/arrow.h"
#include "codec/wire/pb.h"
#include "server/serve/intake/arrow_stacks.h"

#define MEMORY_BYTES_MAX ((size_t)96 << 20) /* that a stream may become */
#define MEMORY_FIRST_FACTOR 4u
#define MEMORY_FIRST_BYTES ((size_t)1 << 20)
#define ROW_BYTES 64u /* that a row takes besides its stack */
#define REF_BYTES 24u /* that a frame of a row takes */
#define LABELS_MAX 256u
#define ROWS_MAX ((int64_t)2 << 20)
#define LABEL_PREFIX "labels."
#define VERSION_KEY "parca_write_schema_version"

enum sample_column {
	COLUMN_PRODUCER,
	COLUMN_SAMPLE_TYPE,
	COLUMN_SAMPLE_UNIT,
	COLUMN_PERIOD_TYPE,
	COLUMN_PERIOD_UNIT,
	COLUMN_TEMPORALITY,
	COLUMN_PERIOD,
	COLUMN_DURATION,
	COLUMN_TIMESTAMP,
	COLUMN_VALUE,
	COLUMN_STACK,
	COLUMN_STACK_ID,
	COLUMNS
};
#define COLUMN_TEXTS COLUMN_PERIOD /* those before are texts that tell profiles apart */

static const char *const column_names[COLUMNS] = {
	"producer", "sample_type", "sample_unit", "period_type", "period_unit", "temporality",
	"period",   "duration",	   "timestamp",	  "value",	 "stacktrace",	"stacktrace_id",
};

/* Labels that would make a series for each thread or request. */
static const char *const sample_labels[] = { "thread_id",   "tid",	"pid",	  "cpu",
					     "thread_name", "trace_id", "span_id" };

static METRIC_COUNTER(unknown_stacks, "firn_intake_stacks_unknown_total", "",
		      "Samples whose stacks the sender named and did not send");

void arrow_input_register_metrics(void)
{
	struct metric *all[] = { &unknown_stacks };

	metrics_register(all, 1);
}

struct label_column {
	struct slice name;
	const struct arrow_array *values;
	const struct arrow_array *within; /* the struct that it is a field of, or NULL */
	bool of_sample;
};

struct sample_row {
	uint32_t group;
	uint32_t row;
};

/* The locations of version 1, by id. */
struct known_stacks {
	struct arrow_stream stream;
	struct idmap map; /* to rows of the batches, one after the other */
	const struct arrow_array **ids, **lists;
	int64_t *firsts;
	size_t batches;
};

struct input {
	struct writing *writing;
	struct err *err;
	struct known_stacks known;
	/* of the batch at hand */
	int64_t rows_count;
	const struct arrow_array *columns[COLUMNS];
	struct label_column labels[LABELS_MAX];
	size_t labels_count;
	struct sample_row *rows;
	uint32_t *group_rows; /* the first row of each */
	size_t groups_count, groups_capacity;
	struct idmap groups;
	int64_t from_ns, until_ns;
};

/* Streams. */

/* Reads with as much memory as it takes, paid for; *ret_paid is to be given back. */
static int read_stream(struct slice bytes, struct budget *budget, struct arrow_stream *ret,
		       size_t *ret_paid, struct err *err)
{
	size_t room = bytes.len * MEMORY_FIRST_FACTOR + MEMORY_FIRST_BYTES;
	int rc;

	*ret = (struct arrow_stream){ .columns = 0 };
	for (;; room *= MEMORY_FIRST_FACTOR) {
		if (room > MEMORY_BYTES_MAX)
			room = MEMORY_BYTES_MAX;
		if (!budget_take(budget, room))
			return budget_fail(budget, room, "take Arrow", err);
		rc = arrow_read(bytes, room, ret, err);
		if (rc != -ERR_LIMIT || room == MEMORY_BYTES_MAX)
			break;
		arrow_stream_free(ret);
		budget_give(budget, room);
		err->code = ERR_NONE;
	}
	*ret_paid = room;
	return rc;
}

static void free_stream(struct arrow_stream *stream, struct budget *budget, size_t paid)
{
	arrow_stream_free(stream);
	budget_give(budget, paid);
}

static const struct arrow_array *column_of(const struct arrow_stream *stream,
					   const struct arrow_batch *batch, const char *name)
{
	for (size_t i = 0; i < stream->columns; i++)
		if (slice_is(arrow_column_name(stream, i), name))
			return batch->columns[i];
	return NULL;
}

/* Known stacks: ids are looked up by what they say. */

static struct slice id_at(const struct known_stacks *known, uint32_t id, size_t *ret_batch,
			  int64_t *ret_row)
{
	size_t batch = 0;

	while (batch + 1 < known->batches && known->firsts[batch + 1] <= (int64_t)id)
		batch++;
	*ret_batch = batch;
	*ret_row = (int64_t)id - known->firsts[batch];
	return arrow_bytes(known->ids[batch], *ret_row);
}

static bool id_equal(const void *context, uint32_t id, const void *key)
{
	size_t batch;
	int64_t row;

	return slice_equal(id_at(context, id, &batch, &row), *(const struct slice *)key);
}

static int index_stacks(struct known_stacks *known, struct err *err)
{
	const struct arrow_stream *stream = &known->stream;
	int64_t first = 0;

	known->ids = mem_new_array(const struct arrow_array *, stream->batches_count + 1);
	known->lists = mem_new_array(const struct arrow_array *, stream->batches_count + 1);
	known->firsts = mem_new_array(int64_t, stream->batches_count + 1);
	for (size_t i = 0; i < stream->batches_count; i++) {
		const struct arrow_batch *batch = &stream->batches[i];

		known->ids[i] = column_of(stream, batch, "stacktrace_id");
		known->lists[i] = column_of(stream, batch, "locations");
		known->firsts[i] = first;
		if (!known->ids[i] || !known->lists[i])
			return err_set(err, ERR_INVALID,
				       "locations: no column stacktrace_id or locations");
		if (first + batch->rows > ROWS_MAX)
			return err_set(err, ERR_LIMIT, "locations: more than %lld stacks",
				       (long long)ROWS_MAX);
		known->batches = i + 1;
		for (int64_t row = 0; row < batch->rows; row++, first++) {
			struct slice id = arrow_bytes(known->ids[i], row);
			uint64_t hash = hash_bytes(id.data, id.len);

			if (idmap_find(&known->map, hash, id_equal, known, &id) == IDMAP_NONE)
				idmap_add(&known->map, hash, (uint32_t)first);
		}
	}
	return 0;
}

static void free_known(struct known_stacks *known)
{
	idmap_free(&known->map);
	free(known->ids);
	free(known->lists);
	free(known->firsts);
}

/* The stack of a row; NULL: nobody knows it. */
static const struct arrow_array *stack_of(const struct input *input, int64_t row,
					  int64_t *ret_first, int64_t *ret_count)
{
	const struct known_stacks *known = &input->known;
	struct slice key;
	uint32_t id;
	size_t batch;
	int64_t at;

	*ret_first = *ret_count = 0;
	if (input->columns[COLUMN_STACK])
		return arrow_items(input->columns[COLUMN_STACK], row, ret_first, ret_count);
	if (!input->columns[COLUMN_STACK_ID])
		return NULL;
	key = arrow_bytes(input->columns[COLUMN_STACK_ID], row);
	id = idmap_find(&known->map, hash_bytes(key.data, key.len), id_equal, known, &key);
	if (id == IDMAP_NONE)
		return NULL;
	id_at(known, id, &batch, &at);
	return arrow_items(known->lists[batch], at, ret_first, ret_count);
}

/* Columns. */

static bool is_of_sample(struct slice name)
{
	for (size_t i = 0; i < sizeof(sample_labels) / sizeof(sample_labels[0]); i++)
		if (slice_is(name, sample_labels[i]))
			return true;
	return false;
}

static int add_label(struct input *input, struct slice name, const struct arrow_array *values,
		     const struct arrow_array *within)
{
	if (input->labels_count == LABELS_MAX)
		return err_set(input->err, ERR_LIMIT, "more than %u label columns", LABELS_MAX);
	input->labels[input->labels_count++] =
		(struct label_column){ name, values, within, is_of_sample(name) };
	return 0;
}

static int find_columns(struct input *input, const struct arrow_stream *stream,
			const struct arrow_batch *batch)
{
	int rc = 0;

	memset(input->columns, 0, sizeof(input->columns));
	input->labels_count = 0;
	input->rows_count = batch->rows;
	for (size_t i = 0; i < stream->columns && !rc; i++) {
		struct slice name = arrow_column_name(stream, i);
		const struct arrow_array *values = batch->columns[i];

		for (int k = 0; k < COLUMNS; k++)
			if (slice_is(name, column_names[k]))
				input->columns[k] = values;
		if (slice_starts_with(name, SLICE_LITERAL(LABEL_PREFIX)))
			rc = add_label(input, slice_tail(name, strlen(LABEL_PREFIX)), values, NULL);
		if (!slice_is(name, "labels") || arrow_shape(values) != ARROW_SHAPE_STRUCT)
			continue;
		for (size_t k = 0; k < arrow_fields(values) && !rc; k++)
			rc = add_label(input, arrow_field_name(values, k), NULL, values);
	}
	if (!rc && !input->columns[COLUMN_VALUE])
		rc = err_set(input->err, ERR_INVALID, "no column value");
	if (!rc && (!input->columns[COLUMN_SAMPLE_TYPE] || !input->columns[COLUMN_SAMPLE_UNIT]))
		rc = err_set(input->err, ERR_INVALID, "no column sample_type or sample_unit");
	if (!rc && !input->columns[COLUMN_STACK] && !input->columns[COLUMN_STACK_ID])
		rc = err_set(input->err, ERR_INVALID, "no column stacktrace or stacktrace_id");
	return rc;
}

static struct slice text_at(const struct input *input, enum sample_column column, int64_t row)
{
	const struct arrow_array *values = input->columns[column];

	return values ? arrow_bytes(values, row) : SLICE_LITERAL("");
}

static int64_t number_at(const struct input *input, enum sample_column column, int64_t row)
{
	const struct arrow_array *values = input->columns[column];

	return values ? arrow_number(values, row) : 0;
}

static struct slice label_at(const struct label_column *label, int64_t row)
{
	const struct arrow_array *values = label->values;

	if (label->within) {
		const struct arrow_array *of = arrow_struct(label->within, row, &row);

		values = NULL;
		for (size_t i = 0; of && !values && i < arrow_fields(of); i++)
			if (slice_equal(arrow_field_name(of, i), label->name))
				values = arrow_field(of, i);
	}
	return values ? arrow_bytes(values, row) : SLICE_LITERAL("");
}

/* Groups: rows with the same labels and types. */

static bool is_delta(const struct input *input, int64_t row)
{
	return number_at(input, COLUMN_DURATION, row) ||
	       slice_is(text_at(input, COLUMN_TEMPORALITY, row), "delta");
}

static uint64_t group_hash(const struct input *input, int64_t row)
{
	uint64_t hash =
		hash_pair((uint64_t)number_at(input, COLUMN_PERIOD, row), is_delta(input, row));

	for (int i = 0; i < COLUMN_TEXTS; i++) {
		struct slice text = text_at(input, (enum sample_column)i, row);

		hash = hash_pair(hash, hash_bytes(text.data, text.len));
	}
	for (size_t i = 0; i < input->labels_count; i++)
		if (!input->labels[i].of_sample) {
			struct slice text = label_at(&input->labels[i], row);

			hash = hash_pair(hash, hash_bytes(text.data, text.len));
		}
	return hash;
}

static bool group_equal(const void *context, uint32_t group, const void *key)
{
	const struct input *input = context;
	int64_t a = input->group_rows[group], b = *(const int64_t *)key;

	if (number_at(input, COLUMN_PERIOD, a) != number_at(input, COLUMN_PERIOD, b) ||
	    is_delta(input, a) != is_delta(input, b))
		return false;
	for (int i = 0; i < COLUMN_TEXTS; i++)
		if (!slice_equal(text_at(input, (enum sample_column)i, a),
				 text_at(input, (enum sample_column)i, b)))
			return false;
	for (size_t i = 0; i < input->labels_count; i++)
		if (!input->labels[i].of_sample &&
		    !slice_equal(label_at(&input->labels[i], a), label_at(&input->labels[i], b)))
			return false;
	return true;
}

static uint32_t group_of(struct input *input, int64_t row)
{
	uint64_t hash = group_hash(input, row);
	uint32_t group = idmap_find(&input->groups, hash, group_equal, input, &row);

	if (group != IDMAP_NONE)
		return group;
	mem_grow(input->group_rows, input->groups_count, input->groups_capacity);
	group = (uint32_t)input->groups_count++;
	input->group_rows[group] = (uint32_t)row;
	idmap_add(&input->groups, hash, group);
	return group;
}

static int compare_rows(const void *a, const void *b)
{
	const struct sample_row *left = a, *right = b;

	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	return left->row < right->row ? -1 : left->row > right->row;
}

static void sort_rows(struct input *input)
{
	input->from_ns = INT64_MAX;
	input->until_ns = INT64_MIN;
	for (int64_t i = 0; i < input->rows_count; i++) {
		int64_t at_ns = number_at(input, COLUMN_TIMESTAMP, i);

		input->rows[i] = (struct sample_row){ group_of(input, i), (uint32_t)i };
		input->from_ns = at_ns < input->from_ns ? at_ns : input->from_ns;
		input->until_ns = at_ns > input->until_ns ? at_ns : input->until_ns;
	}
	if (input->rows_count)
		qsort(input->rows, (size_t)input->rows_count, sizeof(*input->rows), compare_rows);
}

/* One group becomes one profile. */

static void put_type(struct arrow_stacks *stacks, struct strbuf *out, uint32_t field,
		     struct slice type, struct slice unit)
{
	size_t begun = pb_begin(out, field);

	pb_put_varint(out, 1, arrow_stacks_string(stacks, type));
	pb_put_varint(out, 2, arrow_stacks_string(stacks, unit));
	pb_end(out, begun);
}

static void put_row(const struct input *input, struct arrow_stacks *stacks, int64_t row)
{
	int64_t first, count, at_ns = number_at(input, COLUMN_TIMESTAMP, row);
	const struct arrow_array *items = stack_of(input, row, &first, &count);
	size_t begun = arrow_stacks_begin(stacks, items, first, count,
					  number_at(input, COLUMN_VALUE, row));

	if (!items)
		metric_add(&unknown_stacks, 1);
	if (at_ns > 0)
		arrow_stacks_label_number(stacks, "end_timestamp_ns", at_ns);
	for (size_t i = 0; i < input->labels_count; i++) {
		const struct label_column *label = &input->labels[i];
		struct slice text = label->of_sample ? label_at(label, row) : SLICE_LITERAL("");

		for (size_t k = 0; text.len && k < sizeof(sample_labels) / sizeof(*sample_labels);
		     k++)
			if (slice_is(label->name, sample_labels[k]))
				arrow_stacks_label(stacks, sample_labels[k], text);
	}
	arrow_stacks_end(stacks, begun);
}

/* Profile{ sample_type = 1; .. time_nanos = 9, duration_nanos = 10, period_type = 11, period = 12 }
 */
static void put_profile(const struct input *input, const struct sample_row *rows, size_t count,
			struct strbuf *out)
{
	int64_t row = rows->row, duration_ns = number_at(input, COLUMN_DURATION, row);
	struct arrow_stacks stacks;

	arrow_stacks_init(&stacks);
	for (size_t i = 0; i < count; i++)
		put_row(input, &stacks, rows[i].row);
	put_type(&stacks, out, 1, text_at(input, COLUMN_SAMPLE_TYPE, row),
		 text_at(input, COLUMN_SAMPLE_UNIT, row));
	put_type(&stacks, out, 11, text_at(input, COLUMN_PERIOD_TYPE, row),
		 text_at(input, COLUMN_PERIOD_UNIT, row));
	pb_put_varint(out, 12, (uint64_t)number_at(input, COLUMN_PERIOD, row));
	if (input->from_ns > 0)
		pb_put_varint(out, 9, (uint64_t)input->from_ns);
	if (is_delta(input, row)) {
		int64_t span_ns = input->from_ns > 0 ? input->until_ns - input->from_ns : 0;

		pb_put_varint(out, 10, (uint64_t)(span_ns > duration_ns ? span_ns : duration_ns));
	}
	arrow_stacks_write(&stacks, out);
	arrow_stacks_free(&stacks);
}

static int take_group(const struct input *input, const struct sample_row *rows, size_t count)
{
	struct writing *writing = input->writing;
	struct ingest_label labels[LABELS_MAX];
	struct ingest_pprof profile = { .labels = labels,
					.now_ns = clock_real_ns(),
					.name = text_at(input, COLUMN_PRODUCER, rows->row),
					.deltas = is_delta(input, rows->row),
					.datadog_labels = true };
	struct strbuf encoded = { 0 };
	int rc;

	for (size_t i = 0; i < input->labels_count; i++) {
		struct slice value = label_at(&input->labels[i], rows->row);

		if (!input->labels[i].of_sample && value.len)
			labels[profile.labels_count++] =
				(struct ingest_label){ input->labels[i].name, value };
	}
	put_profile(input, rows, count, &encoded);
	profile.bytes = strbuf_slice(&encoded);
	rc = ingest_from_pprof(writing->scratch, &writing->limits, &profile, writing->batch,
			       input->err);
	strbuf_free(&encoded);
	return rc;
}

static int take_groups(struct input *input)
{
	int64_t begun = 0;
	int rc = 0;

	while (begun < input->rows_count && !rc) {
		int64_t end = begun + 1;

		while (end < input->rows_count &&
		       input->rows[end].group == input->rows[begun].group)
			end++;
		rc = take_group(input, &input->rows[begun], (size_t)(end - begun));
		begun = end;
	}
	return rc;
}

/* What building will take: lists may share their items, so that few bytes are many frames. */
static size_t bytes_of_rows(const struct input *input)
{
	size_t bytes = 0;

	for (int64_t i = 0; i < input->rows_count; i++) {
		int64_t first, count;

		stack_of(input, i, &first, &count);
		bytes += ROW_BYTES + REF_BYTES * (size_t)(count < ARROW_STACK_DEPTH_MAX
								  ? count
								  : ARROW_STACK_DEPTH_MAX);
	}
	return bytes;
}

static int take_batch(struct input *input, const struct arrow_stream *stream,
		      const struct arrow_batch *batch)
{
	struct budget *budget = input->writing->budget;
	size_t paid;
	int rc = find_columns(input, stream, batch);

	if (!rc && batch->rows > ROWS_MAX)
		rc = err_set(input->err, ERR_LIMIT, "more than %lld rows", (long long)ROWS_MAX);
	if (rc)
		return rc;
	paid = bytes_of_rows(input);
	if (!budget_take(budget, paid))
		return budget_fail(budget, paid, "take Arrow", input->err);
	input->rows = mem_new_array(struct sample_row, (size_t)batch->rows + 1);
	input->groups_count = 0;
	idmap_clear(&input->groups);
	sort_rows(input);
	rc = take_groups(input);
	free(input->rows);
	input->rows = NULL;
	budget_give(budget, paid);
	return rc;
}

static int take_samples(struct input *input, const struct arrow_stream *stream)
{
	int rc = 0;

	for (size_t i = 0; i < stream->batches_count && !rc; i++)
		rc = take_batch(input, stream, &stream->batches[i]);
	return rc;
}

int arrow_input_take(struct writing *writing, struct slice samples, struct slice locations)
{
	struct input *input = mem_new(struct input);
	struct arrow_stream stream;
	size_t paid = 0, paid_known = 0;
	int rc;

	input->writing = writing;
	input->err = &writing->err;
	rc = read_stream(samples, writing->budget, &stream, &paid, input->err);
	if (!rc && !locations.len)
		locations = slice_tail(samples, stream.consumed);
	if (!rc && locations.len)
		rc = read_stream(locations, writing->budget, &input->known.stream, &paid_known,
				 input->err);
	if (!rc && locations.len)
		rc = index_stacks(&input->known, input->err);
	if (!rc)
		rc = take_samples(input, &stream);
	free_known(&input->known);
	free_stream(&input->known.stream, writing->budget, paid_known);
	free_stream(&stream, writing->budget, paid);
	idmap_free(&input->groups);
	free(input->group_rows);
	free(input);
	return rc;
}

/* The ids of stacks, each once. */
struct asked {
	struct slice *ids;
	size_t count, capacity;
	struct idmap map;
};

static bool asked_equal(const void *context, uint32_t id, const void *key)
{
	const struct asked *asked = context;

	return slice_equal(asked->ids[id], *(const struct slice *)key);
}

static void ask_for(struct asked *asked, struct slice id)
{
	uint64_t hash = hash_bytes(id.data, id.len);

	if (idmap_find(&asked->map, hash, asked_equal, asked, &id) != IDMAP_NONE)
		return;
	mem_grow(asked->ids, asked->count, asked->capacity);
	idmap_add(&asked->map, hash, (uint32_t)asked->count);
	asked->ids[asked->count++] = id;
}

static void ask_for_batch(struct asked *asked, const struct arrow_array *ids, int64_t rows)
{
	for (int64_t row = 0; row < rows; row++)
		if (!arrow_is_null(ids, row))
			ask_for(asked, arrow_bytes(ids, row));
}

static int check_rows(const struct arrow_stream *stream, struct err *err)
{
	int64_t rows = 0;

	for (size_t i = 0; i < stream->batches_count; i++)
		rows += stream->batches[i].rows;
	if (rows > ROWS_MAX)
		return err_set(err, ERR_LIMIT, "more than %lld rows", (long long)ROWS_MAX);
	return 0;
}

static int ask(const struct arrow_stream *stream, struct budget *budget, struct strbuf *out,
	       struct err *err)
{
	struct arrow_column column = { .name = column_names[COLUMN_STACK_ID],
				       .type = ARROW_BINARY };
	struct asked asked = { 0 };
	size_t paid = 0;
	int rc = check_rows(stream, err);

	for (size_t i = 0; i < stream->batches_count && !rc; i++) {
		const struct arrow_batch *batch = &stream->batches[i];
		const struct arrow_array *ids = column_of(stream, batch, column.name);
		size_t more = (size_t)batch->rows * ROW_BYTES;

		if (!ids)
			continue;
		if (!budget_take(budget, more)) {
			rc = budget_fail(budget, more, "take Arrow", err);
			break;
		}
		paid += more;
		ask_for_batch(&asked, ids, batch->rows);
	}
	column.texts = asked.ids;
	if (!rc && asked.count)
		arrow_write_noted(&column, 1, asked.count, VERSION_KEY, "v1", out);
	budget_give(budget, paid);
	idmap_free(&asked.map);
	free(asked.ids);
	return rc;
}

int arrow_input_ask(struct slice samples, struct budget *budget, struct strbuf *out,
		    struct err *err)
{
	struct arrow_stream stream;
	size_t paid = 0;
	int rc = read_stream(samples, budget, &stream, &paid, err);

	if (!rc)
		rc = ask(&stream, budget, out, err);
	free_stream(&stream, budget, paid);
	return rc;
}

/* WriteArrowRequest{ ipc_buffer = 1 }; the answer is empty, so a refused report fails the call. */
void write_arrow(void *context, const struct net_request *request, struct net_response *response)
{
	struct writing writing;
	struct pb_reader in = pb_reader_of(request->body);
	struct pb_field field;
	struct slice streams = { "", 0 };
	int rc = writing_begin(&writing, context, request, WRITING_ARROW);

	while (!rc && pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == 1)
			streams = field.bytes;
	if (!rc && in.problem)
		rc = pb_fail(&in, "WriteArrowRequest", &writing.err);
	if (!rc)
		rc = arrow_input_take(&writing, streams, SLICE_LITERAL(""));
	if (!rc)
		rc = writing_append_all(&writing);
	(void)rc; /* writing has the error */
	writing_end(&writing, response);
}
