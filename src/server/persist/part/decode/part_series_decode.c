/* SPDX-License-Identifier: Apache-2.0 */
/* The first helping of part_dictionary_decode.h. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/disk/byte_reader.h"
#include "server/persist/part/decode/part_dictionary_decode.h"
#include "server/persist/log/tables_check.h"

#define STRING_BYTES_FREE ((uint64_t)64 << 20) /* front-coded ones may become that large, and */
#define STRING_BYTES_FACTOR 16u		       /* this many times what they are stored in */

static const struct node root_node;

static int corrupt(const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "series: %s", what);
}

static void *array(struct part_series_image *image, size_t count, size_t element_bytes)
{
	image->bytes += count * element_bytes;
	return mem_calloc(count ? count : 1, element_bytes);
}

void part_series_free(struct part_series_image *image)
{
	struct tables_view *view = &image->view;

	free((void *)(uintptr_t)view->string_bytes);
	free((void *)(uintptr_t)view->strings);
	free((void *)(uintptr_t)view->labels);
	free((void *)(uintptr_t)view->label_sets);
	free((void *)(uintptr_t)view->columns);
	free((void *)(uintptr_t)view->groups);
	free((void *)(uintptr_t)view->series);
	for (int i = 0; i < SEGMENT_LEVELS; i++) {
		free(image->zones[i]);
		free(image->blocks[i]);
	}
	*image = (struct part_series_image){ 0 };
}

/* Strings. */

struct string_lengths {
	struct byte_reader shared, rest;
	uint64_t bytes, rest_bytes;
};

/* Looks ahead: two lists of `count` numbers, then the bytes. */
static int measure_strings(struct byte_reader *in, uint32_t count, struct string_lengths *ret,
			   struct err *err)
{
	uint64_t limit = STRING_BYTES_FREE + STRING_BYTES_FACTOR * byte_reader_left(in);
	uint32_t *shared;
	uint64_t previous = 0;

	if (count > byte_reader_left(in))
		return corrupt("more strings than bytes", err);
	shared = mem_realloc(NULL, count ? count : 1, sizeof(*shared));
	*ret = (struct string_lengths){ .shared = *in };
	for (uint32_t i = 0; i < count; i++)
		shared[i] = byte_reader_varint32(in);
	ret->rest = *in;
	for (uint32_t i = 0; i < count && !in->failed; i++) {
		uint32_t rest = byte_reader_varint32(in);

		if (shared[i] > previous)
			in->failed = true;
		previous = (uint64_t)shared[i] + rest;
		ret->bytes += previous;
		ret->rest_bytes += rest;
		in->failed |= previous > UINT32_MAX || ret->bytes > limit;
	}
	free(shared);
	return in->failed ? corrupt("lengths of strings", err) : 0;
}

static struct slice type_text(const struct part_partition *type, uint32_t i)
{
	const struct slice group[] = { type->group_name, type->period_type, type->period_unit };

	if (i < 3)
		return group[i];
	i -= 3;
	return i % 2 ? type->columns[i / 2].sample_unit : type->columns[i / 2].sample_type;
}

static uint32_t type_texts(const struct part_partition *type)
{
	return 3 + 2 * type->columns_count;
}

static int read_sorted_strings(struct byte_reader *in, uint32_t count,
			       struct string_lengths *lengths, char *bytes, struct string_ref *refs,
			       uint64_t *ret_bytes, struct err *err)
{
	struct slice previous = { "", 0 };
	uint64_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t shared = byte_reader_varint32(&lengths->shared);
		struct slice rest = byte_reader_bytes(in, byte_reader_varint32(&lengths->rest));
		struct slice text = { bytes + at, shared + rest.len };

		if (in->failed)
			return corrupt("strings end early", err);
		memcpy(bytes + at, previous.data, shared);
		memcpy(bytes + at + shared, rest.data, rest.len);
		if (slice_compare(previous, text) >= 0)
			return corrupt("strings of labels are not sorted", err);
		refs[i] = (struct string_ref){ at, (uint32_t)text.len };
		previous = text;
		at += text.len;
	}
	*ret_bytes = at;
	return 0;
}

/* Strings of labels; behind them those of the sample type, which stand in the directory. */
static int read_strings(struct byte_reader *in, const struct part_dictionary_shape *shape,
			struct part_series_image *image, struct err *err)
{
	uint32_t count = byte_reader_varint32(in), type_count = type_texts(shape->type);
	struct string_lengths lengths = { 0 };
	struct string_ref *refs;
	uint64_t bytes = 0, type_bytes = 0;
	char *to;
	int rc;

	if (in->failed || (uint64_t)count + 1 != shape->label_strings)
		return corrupt("other strings than the directory says", err);
	rc = measure_strings(in, count, &lengths, err);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < type_count; i++)
		type_bytes += type_text(shape->type, i).len;
	to = array(image, lengths.bytes + type_bytes, 1);
	refs = array(image, (size_t)count + 1 + type_count, sizeof(*refs));
	image->view.string_bytes = to;
	image->view.strings = refs;
	rc = read_sorted_strings(in, count, &lengths, to, refs + 1, &bytes, err);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < type_count; i++) {
		struct slice text = type_text(shape->type, i);

		memcpy(to + bytes, text.data, text.len);
		refs[count + 1 + i] = (struct string_ref){ bytes, (uint32_t)text.len };
		bytes += text.len;
	}
	assert(bytes == lengths.bytes + type_bytes);
	image->view.string_bytes_count = bytes;
	image->view.strings_count = count + 1 + type_count;
	image->type_strings_first = count + 1;
	image->type_strings_count = type_count;
	return 0;
}

/* The string of a text of the type: that of labels if there is one, so that none is there twice. */
static uint32_t type_string(const struct part_series_image *image, uint32_t i)
{
	uint32_t id = image->type_strings_first + i, low = 1, high = image->type_strings_first;
	struct slice text = tables_text(&image->view, id);

	assert(i < image->type_strings_count);
	if (!text.len)
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = slice_compare(tables_text(&image->view, middle), text);

		if (!order)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (low = image->type_strings_first; low < id; low++)
		if (slice_equal(tables_text(&image->view, low), text))
			return low;
	return id;
}

static void make_group(const struct part_dictionary_shape *shape, struct part_series_image *image)
{
	const struct part_partition *type = shape->type;
	struct group *group = array(image, 1, sizeof(*group));
	struct column *columns = array(image, type->columns_count, sizeof(*columns));

	*group = (struct group){
		.name = type_string(image, 0),
		.period_type = type_string(image, 1),
		.period_unit = type_string(image, 2),
		.column_count = type->columns_count,
		.period = type->period,
	};
	for (uint32_t i = 0; i < type->columns_count; i++)
		columns[i] = (struct column){
			.sample_type = type_string(image, 3 + 2 * i),
			.sample_unit = type_string(image, 4 + 2 * i),
			.kind = type->columns[i].kind,
		};
	image->view.groups = group;
	image->view.groups_count = 1;
	image->view.columns = columns;
	image->view.columns_count = type->columns_count;
}

/* Labels. */

/* Label columns, kept until the label sets can be laid out. */
struct label_columns {
	uint32_t count;
	uint32_t *names;
	uint32_t *values; /* column * series + series: string + 1, 0 = none */
};

static int read_label_column(struct byte_reader *in, const struct part_dictionary_shape *shape,
			     uint32_t *values, struct err *err)
{
	uint32_t count = byte_reader_varint32(in), *strings;
	uint64_t string = 0;
	int rc = 0;

	if (in->failed || count > byte_reader_left(in) || count > shape->label_strings)
		return corrupt("more values than bytes", err);
	strings = mem_realloc(NULL, (size_t)count + 1, sizeof(*strings));
	strings[0] = 0;
	for (uint32_t i = 0; i < count && !rc; i++) {
		uint64_t gap = byte_reader_varint32(in);

		string += gap;
		if ((i && !gap) || string >= shape->label_strings)
			rc = corrupt("values of a label", err);
		strings[i + 1] = (uint32_t)string + 1;
	}
	for (uint32_t i = 0; i < shape->series && !rc; i++) {
		uint32_t place = byte_reader_varint32(in);

		if (in->failed || place > count)
			rc = corrupt("a series has a label value that is not there", err);
		else
			values[i] = strings[place];
	}
	free(strings);
	return rc;
}

static int read_label_columns(struct byte_reader *in, const struct part_dictionary_shape *shape,
			      struct label_columns *ret, struct err *err)
{
	uint64_t name = 0;
	int rc = 0;

	ret->count = byte_reader_varint32(in);
	if (in->failed || ret->count > shape->label_strings ||
	    (uint64_t)ret->count * shape->series > byte_reader_left(in))
		return corrupt("more labels than bytes", err);
	if (!ret->count && shape->series > 1)
		return corrupt("several have no label to tell them apart", err);
	ret->names = mem_new_array(uint32_t, ret->count);
	ret->values = mem_new_array(uint32_t, (size_t)ret->count * shape->series);
	for (uint32_t i = 0; i < ret->count && !rc; i++) {
		uint64_t gap = byte_reader_varint32(in);

		name += gap;
		if ((i && !gap) || name >= shape->label_strings)
			return corrupt("names of labels are not sorted", err);
		ret->names[i] = (uint32_t)name;
		rc = read_label_column(in, shape, ret->values + (size_t)i * shape->series, err);
	}
	return rc;
}

static int read_row_label(struct byte_reader *in, struct label *ret)
{
	uint64_t name = byte_reader_varint(in);

	*ret = (struct label){ .name = (uint32_t)(name >> 1), .numeric = name & 1 };
	if (ret->numeric) {
		ret->unit = byte_reader_varint32(in);
		ret->number = byte_reader_zigzag(in);
	} else {
		ret->value = byte_reader_varint32(in);
	}
	return in->failed || name >> 1 > UINT32_MAX ? -1 : 0;
}

/* The labels of rows, counted first and then made. */
static int read_row_label_sets(struct byte_reader *in, const struct part_dictionary_shape *shape,
			       struct label_set *sets, struct label *labels, uint32_t *ret_count,
			       struct err *err)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < shape->row_label_sets; i++) {
		uint64_t count = byte_reader_varint(in);

		if (in->failed || count > TABLES_LABELS_PER_SET_MAX)
			return corrupt("a row has too many labels", err);
		if (sets)
			sets[i] = (struct label_set){ total, (uint32_t)count };
		for (; count; count--, total++) {
			struct label label;

			if (read_row_label(in, &label))
				return corrupt("labels of rows end early", err);
			if (label.name >= shape->label_strings ||
			    label.value >= shape->label_strings ||
			    label.unit >= shape->label_strings)
				return corrupt("a row's label names no string", err);
			if (labels)
				labels[total] = label;
		}
	}
	*ret_count = total;
	return 0;
}

static uint32_t count_series_labels(const struct part_dictionary_shape *shape,
				    const struct label_columns *columns)
{
	uint64_t cells = (uint64_t)columns->count * shape->series;
	uint32_t count = 0;

	for (uint64_t i = 0; i < cells; i++)
		count += columns->values[i] != 0;
	return count;
}

static int add_series(const struct part_dictionary_shape *shape,
		      const struct label_columns *columns, uint32_t number, struct label *labels,
		      uint32_t *labels_count, struct label_set *ret, struct err *err)
{
	ret->label_first = *labels_count;
	ret->label_count = 0;
	for (uint32_t i = 0; i < columns->count; i++) {
		uint32_t value = columns->values[(size_t)i * shape->series + number];

		if (!value)
			continue;
		if (++ret->label_count > TABLES_LABELS_PER_SET_MAX)
			return corrupt("one has too many labels", err);
		labels[(*labels_count)++] =
			(struct label){ .name = columns->names[i], .value = value - 1 };
	}
	return 0;
}

static int make_label_sets(struct byte_reader *in, const struct part_dictionary_shape *shape,
			   const struct label_columns *columns, struct part_series_image *image,
			   struct err *err)
{
	struct byte_reader again = *in;
	uint32_t count = 0, rows_first = 1, series_first = 1 + shape->row_label_sets;
	struct label_set *sets;
	struct label *labels;
	struct series *series;
	int rc;

	if (shape->row_label_sets > byte_reader_left(in))
		return corrupt("more label sets of rows than bytes", err);
	rc = read_row_label_sets(in, shape, NULL, NULL, &count, err);
	if (rc)
		return rc;
	sets = array(image, (size_t)series_first + shape->series, sizeof(*sets));
	labels = array(image, (size_t)count + count_series_labels(shape, columns), sizeof(*labels));
	series = array(image, shape->series, sizeof(*series));
	image->view.label_sets = sets;
	image->view.labels = labels;
	image->view.series = series;
	rc = read_row_label_sets(&again, shape, sets + rows_first, labels, &count, err);
	for (uint32_t i = 0; i < shape->series && !rc; i++) {
		rc = add_series(shape, columns, i, labels, &count, &sets[series_first + i], err);
		series[i].label_set = sets[series_first + i].label_count ? series_first + i : 0;
	}
	image->view.label_sets_count = series_first + shape->series;
	image->view.labels_count = count;
	image->view.series_count = shape->series;
	return rc;
}

static int read_labels(struct byte_reader *in, const struct part_dictionary_shape *shape,
		       struct part_series_image *image, struct err *err)
{
	struct label_columns columns = { 0 };
	int rc = read_label_columns(in, shape, &columns, err);

	if (!rc)
		rc = make_label_sets(in, shape, &columns, image, err);
	free(columns.names);
	free(columns.values);
	return rc;
}

/* The index of blocks. */

static int read_block(struct byte_reader *in, const struct part_dictionary_shape *shape,
		      struct part_block *block, struct segment_zone *zone, bool first,
		      struct err *err)
{
	uint64_t stripe = (first ? 0 : (uint64_t)block[-1].stripe + 1) + byte_reader_varint32(in);
	uint64_t series, series_more, start, end;

	block->stripe = (uint32_t)stripe;
	block->first = byte_reader_varint32(in);
	zone->reports = byte_reader_varint32(in);
	zone->rows = byte_reader_varint(in);
	series = (first ? 0 : (uint64_t)zone[-1].series_max) + byte_reader_varint32(in);
	series_more = byte_reader_varint32(in);
	zone->series_min = (uint32_t)series;
	zone->series_max = (uint32_t)(series + series_more);
	start = first ? (uint64_t)shape->start_min_ns : (uint64_t)zone[-1].start_min_ns;
	zone->start_min_ns = (int64_t)(start + (uint64_t)byte_reader_zigzag(in));
	end = (uint64_t)shape->start_max_ns - (uint64_t)byte_reader_zigzag(in);
	zone->start_max_ns = (int64_t)end;
	if (in->failed || stripe > UINT32_MAX || !zone->reports ||
	    series + series_more >= shape->series || zone->start_max_ns < zone->start_min_ns)
		return corrupt("the index of blocks", err);
	return 0;
}

static int read_index(struct slice index, const struct part_dictionary_shape *shape,
		      struct part_series_image *image, struct err *err)
{
	struct byte_reader in = byte_reader_of(index);

	for (int level = 0; level < SEGMENT_LEVELS; level++) {
		uint32_t count = shape->blocks[level];

		if (count > byte_reader_left(&in))
			return corrupt("more blocks than bytes", err);
		image->zones[level] = array(image, count, sizeof(struct segment_zone));
		image->blocks[level] = array(image, count, sizeof(struct part_block));
		for (uint32_t i = 0; i < count; i++) {
			int rc = read_block(&in, shape, &image->blocks[level][i],
					    &image->zones[level][i], !i, err);

			if (rc)
				return rc;
		}
	}
	return byte_reader_left(&in) ? corrupt("the index has too many blocks", err) : 0;
}

static int read_series(struct slice series, const struct part_dictionary_shape *shape,
		       struct part_series_image *image, struct err *err)
{
	struct byte_reader in = byte_reader_of(series);
	int rc = read_strings(&in, shape, image, err);

	if (rc)
		return rc;
	make_group(shape, image);
	rc = read_labels(&in, shape, image, err);
	if (!rc && byte_reader_left(&in))
		rc = corrupt("bytes behind the labels", err);
	return rc;
}

int part_series_decode(struct slice index, struct slice series,
		       const struct part_dictionary_shape *shape, struct part_series_image *ret,
		       struct err *err)
{
	struct part_series_image image = { .view = { .nodes = &root_node, .nodes_count = 1 } };
	int rc = read_series(series, shape, &image, err);

	if (!rc)
		rc = read_index(index, shape, &image, err);
	if (!rc)
		rc = tables_check(&image.view, err);
	if (rc)
		part_series_free(&image);
	else
		*ret = image;
	return rc;
}
