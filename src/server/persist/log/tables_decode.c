/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reading half of tables_codec.h. An array is allocated only after its count was compared with
 * the bytes that are left (every element takes at least one); all queries about ids are left to
 * tables_check.
 */
#include "base/hash.h"
#include "base/mem.h"
#include "codec/archive/compress.h"
#include "server/persist/disk/byte_reader.h"
#include "server/persist/log/tables_check.h"
#include "server/persist/log/tables_codec_int.h"

static const char *const section_names[TABLES_SECTIONS_END] = {
	[TABLES_SECTION_STRINGS] = "strings",	    [TABLES_SECTION_LABELS] = "labels",
	[TABLES_SECTION_GROUPS] = "groups",	    [TABLES_SECTION_SERIES] = "series",
	[TABLES_SECTION_FRAMES] = "frames",	    [TABLES_SECTION_NODES] = "nodes",
	[TABLES_SECTION_REPORTS] = "reports",	    [TABLES_SECTION_STACKS] = "stacks",
	[TABLES_SECTION_ROW_LABELS] = "row labels", [TABLES_SECTION_VALUES] = "values",
	[TABLES_SECTION_LINKS] = "links",	    [TABLES_SECTION_MOMENTS] = "moments",
};

static uint64_t take_difference(struct byte_reader *in, uint64_t *previous)
{
	*previous += (uint64_t)byte_reader_zigzag(in);
	return *previous;
}

static uint32_t take_difference32(struct byte_reader *in, uint64_t *previous)
{
	uint64_t value = take_difference(in, previous);

	if (value > UINT32_MAX)
		in->failed = true;
	return (uint32_t)value;
}

struct decoder {
	struct tables_image *image;
	struct strbuf plain[TABLES_SECTIONS_END]; /* owns decompressed bytes */
	struct slice raw[TABLES_SECTIONS_END];
	uint16_t versions[TABLES_SECTIONS_END];
	bool present[TABLES_SECTIONS_END];
};

/* A count of elements of at least one byte each, and the zeroed array for them. */
static void *take_array(struct tables_image *image, struct byte_reader *in, uint64_t count,
			size_t element_bytes)
{
	if (count > byte_reader_left(in) || count > TABLES_ROWS_MAX) {
		in->failed = true;
		count = 0;
	}
	image->bytes += count * element_bytes;
	return mem_calloc(count, element_bytes);
}

static uint32_t take_count(struct byte_reader *in)
{
	uint32_t count = byte_reader_varint32(in);

	if (count > byte_reader_left(in) || count > TABLES_IDS_MAX) {
		in->failed = true;
		return 0;
	}
	return count;
}

static void decode_strings(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	struct tables_view *view = &image->view;
	uint32_t count = take_count(in);
	struct string_ref *strings = take_array(image, in, count, sizeof(*strings));
	struct slice bytes;
	char *copy;

	(void)version;
	view->strings = strings;
	view->strings_count = count;
	for (uint32_t i = 0; i < count; i++) {
		strings[i].offset = view->string_bytes_count;
		strings[i].len = byte_reader_varint32(in);
		view->string_bytes_count += strings[i].len;
	}
	bytes = byte_reader_bytes(in, view->string_bytes_count);
	copy = mem_strndup(bytes.data, bytes.len);
	image->bytes += bytes.len;
	view->string_bytes = copy;
	view->string_bytes_count = bytes.len;
}

static struct label take_label(struct byte_reader *in)
{
	uint64_t name = byte_reader_varint(in);
	struct label label = { .name = (uint32_t)(name >> 1), .numeric = name & 1 };

	if (name >> 1 > UINT32_MAX)
		in->failed = true;
	label.value = byte_reader_varint32(in);
	if (label.numeric) {
		label.unit = byte_reader_varint32(in);
		label.number = byte_reader_zigzag(in);
	}
	return label;
}

static void decode_labels(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	struct tables_view *view = &image->view;
	uint32_t count = take_count(in);
	struct label_set *sets = take_array(image, in, count, sizeof(*sets));
	struct label *labels;
	uint64_t total = 0;

	(void)version;
	view->label_sets = sets;
	view->label_sets_count = count;
	for (uint32_t i = 0; i < count; i++) {
		sets[i].label_count = byte_reader_varint32(in);
		sets[i].label_first = (uint32_t)total;
		total += sets[i].label_count;
		if (total > TABLES_IDS_MAX) {
			in->failed = true;
			total = 0;
		}
	}
	labels = take_array(image, in, total, sizeof(*labels));
	view->labels = labels;
	view->labels_count = in->failed ? 0 : (uint32_t)total;
	for (uint32_t i = 0; i < view->labels_count; i++)
		labels[i] = take_label(in);
}

static void decode_groups(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	struct tables_view *view = &image->view;
	uint32_t count = take_count(in);
	struct group *groups = take_array(image, in, count, sizeof(*groups));
	/* a column takes three bytes or more */
	struct column *columns = take_array(image, in, byte_reader_left(in) / 3, sizeof(*columns));

	(void)version;
	view->groups = groups;
	view->groups_count = count;
	view->columns = columns;
	for (uint32_t i = 0; i < count && !in->failed; i++) {
		groups[i].column_count = byte_reader_varint32(in);
		groups[i].column_first = view->columns_count;
		groups[i].name = byte_reader_varint32(in);
		groups[i].period_type = byte_reader_varint32(in);
		groups[i].period_unit = byte_reader_varint32(in);
		groups[i].period = byte_reader_zigzag(in);
		if (groups[i].column_count > byte_reader_left(in) / 3)
			in->failed = true;
		for (uint32_t j = 0; j < groups[i].column_count && !in->failed; j++) {
			struct column *column = &columns[view->columns_count++];

			column->sample_type = byte_reader_varint32(in);
			column->sample_unit = byte_reader_varint32(in);
			column->kind = byte_reader_varint32(in);
		}
	}
}

static void decode_series(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	uint32_t count = take_count(in);
	struct series *series = take_array(image, in, count, sizeof(*series));
	uint64_t label_set = 0, group = 0;

	(void)version;
	image->view.series = series;
	image->view.series_count = count;
	for (uint32_t i = 0; i < count; i++) {
		series[i].label_set = take_difference32(in, &label_set);
		series[i].group = take_difference32(in, &group);
	}
}

static void decode_frames(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	uint32_t count = take_count(in);
	struct frame *frames = take_array(image, in, count, sizeof(*frames));
	uint64_t address = 0;

	image->view.frames = frames;
	image->view.frames_count = in->failed ? 0 : count;
	for (uint32_t i = 0; i < image->view.frames_count; i++)
		frames[i].address = take_difference(in, &address);
	for (size_t field = 0; field < FRAME_FIELDS; field++) {
		uint64_t constant =
			version >= FRAMES_VERSION_CONSTANTS ? byte_reader_varint(in) : 0;
		uint64_t previous = 0;

		if (constant > 1)
			in->failed = true;
		for (uint32_t i = 0; i < image->view.frames_count; i++)
			*frame_field(&frames[i], field) =
				constant && i ? (uint32_t)previous
					      : take_difference32(in, &previous);
	}
}

static void decode_nodes(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	uint32_t count = byte_reader_varint32(in);
	struct node *nodes;
	int64_t next_frame = 0;

	(void)version;
	if (!count || count - 1 > byte_reader_left(in) || count > TABLES_NODES_MAX) {
		in->failed = true;
		return;
	}
	nodes = mem_new_array(struct node, count);
	image->bytes += count * sizeof(*nodes);
	image->view.nodes = nodes;
	image->view.nodes_count = count;
	for (uint32_t i = 1; i < count; i++) {
		uint32_t distance = byte_reader_varint32(in);

		if (distance > i - 1)
			in->failed = true;
		nodes[i].parent = i - 1 - distance;
	}
	for (uint32_t i = 1; i < count; i++) {
		uint64_t frame = (uint64_t)next_frame - (uint64_t)byte_reader_zigzag(in);

		if (frame > UINT32_MAX)
			in->failed = true;
		nodes[i].frame = (uint32_t)frame;
		if (nodes[i].frame >= next_frame)
			next_frame = (int64_t)nodes[i].frame + 1;
	}
}

/* Columns of the series, or 0 when one of the ids on the way is not there. */
static uint32_t columns_of(const struct tables_view *view, uint32_t series)
{
	if (series >= view->series_count || view->series[series].group >= view->groups_count)
		return 0;
	return view->groups[view->series[series].group].column_count;
}

/* Where each report's rows, values and totals lie: one behind the other. */
static void place_reports(struct tables_view *view, struct report *reports, struct byte_reader *in)
{
	for (uint32_t i = 0; i < view->reports_count; i++) {
		uint32_t columns = columns_of(view, reports[i].series);

		if (!columns || columns > TABLES_COLUMNS_PER_GROUP_MAX)
			in->failed = true;
		reports[i].row_first = view->rows_count;
		reports[i].value_first = view->values_count;
		reports[i].total_first = view->totals_count;
		view->rows_count += reports[i].row_count;
		view->values_count += (uint64_t)reports[i].row_count * columns;
		view->totals_count += columns;
	}
	if (view->rows_count > TABLES_ROWS_MAX || view->values_count > TABLES_VALUES_MAX)
		in->failed = true;
}

static void decode_reports(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	struct tables_view *view = &image->view;
	uint32_t count = take_count(in);
	struct report *reports = take_array(image, in, count, sizeof(*reports));
	uint64_t series = 0, start = 0, duration = 0, rows = 0;
	int64_t *totals;

	(void)version;
	view->reports = reports;
	view->reports_count = count;
	for (uint32_t i = 0; i < count; i++)
		reports[i].series = take_difference32(in, &series);
	for (uint32_t i = 0; i < count; i++)
		reports[i].start_ns = (int64_t)take_difference(in, &start);
	for (uint32_t i = 0; i < count; i++)
		reports[i].duration_ns = (int64_t)take_difference(in, &duration);
	for (uint32_t i = 0; i < count; i++)
		reports[i].row_count = take_difference32(in, &rows);
	for (uint32_t i = 0; i < count; i++)
		reports[i].batch_id = byte_reader_u64(in);
	place_reports(view, reports, in);
	totals = take_array(image, in, view->totals_count, sizeof(*totals));
	view->totals = totals;
	for (uint64_t i = 0; i < view->totals_count && !in->failed; i++)
		totals[i] = byte_reader_zigzag(in);
}

static void decode_stacks(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	struct tables_view *view = &image->view;
	struct row *rows = take_array(image, in, view->rows_count, sizeof(*rows));

	view->rows = rows;
	for (uint32_t i = 0; i < view->reports_count && !in->failed; i++) {
		uint64_t previous = 0;

		for (uint32_t j = 0; j < view->reports[i].row_count; j++, rows++) {
			if (version == STACKS_VERSION_UNSORTED) {
				rows->stack = take_difference32(in, &previous);
				continue;
			}
			previous += byte_reader_varint32(in);
			if (previous > UINT32_MAX)
				in->failed = true;
			rows->stack = (uint32_t)previous;
		}
	}
}

static void decode_row_labels(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	struct tables_view *view = &image->view;
	struct row *rows = (struct row *)(uintptr_t)view->rows;
	uint64_t at = 0;

	(void)version;
	while (at < view->rows_count && !in->failed) {
		uint32_t label_set = byte_reader_varint32(in);
		uint64_t run = byte_reader_varint(in);

		if (!run || run > view->rows_count - at)
			in->failed = true;
		for (; run && !in->failed; run--)
			rows[at++].label_set = label_set;
	}
}

static void decode_values(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	struct tables_view *view = &image->view;
	int64_t *values = take_array(image, in, view->values_count, sizeof(*values));

	(void)version;
	view->values = values;
	for (uint32_t i = 0; i < view->reports_count && !in->failed; i++) {
		const struct report *report = &view->reports[i];
		uint32_t columns = columns_of(view, report->series);

		for (uint32_t column = 0; column < columns; column++)
			for (uint32_t row = 0; row < report->row_count; row++)
				values[report->value_first + (uint64_t)row * columns + column] =
					byte_reader_zigzag(in);
	}
}

static void decode_links(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	uint64_t count = byte_reader_varint(in);
	struct slice bytes = { 0 };
	struct trace_link *links;

	(void)version;
	if (count <= byte_reader_left(in) / sizeof(*links))
		bytes = byte_reader_bytes(in, count * sizeof(*links));
	else
		in->failed = true;
	links = mem_new_array(struct trace_link, bytes.len / sizeof(*links) + 1);
	if (bytes.len)
		memcpy(links + 1, bytes.data, bytes.len);
	image->view.links = links;
	image->view.links_count = (uint32_t)(bytes.len / sizeof(*links) + 1);
	image->bytes += bytes.len + sizeof(*links);
}

static void decode_moments(struct tables_image *image, struct byte_reader *in, uint16_t version)
{
	struct tables_view *view = &image->view;
	struct report *reports = (struct report *)(uintptr_t)view->reports;
	struct moment *moments, *at;
	uint64_t count = 0;

	(void)version;
	for (uint32_t i = 0; i < view->reports_count; i++) {
		reports[i].moment_first = count;
		reports[i].moment_count = byte_reader_varint32(in);
		count += reports[i].moment_count;
	}
	at = moments = take_array(image, in, count, sizeof(*moments));
	view->moments = moments;
	view->moments_count = in->failed ? 0 : count;
	for (uint32_t i = 0; i < view->reports_count && !in->failed; i++) {
		uint64_t row = 0;

		for (uint32_t j = 0; j < reports[i].moment_count; j++, at++) {
			row += byte_reader_varint32(in);
			if (row > UINT32_MAX)
				in->failed = true;
			at->row = (uint32_t)row;
		}
	}
	for (uint64_t i = 0; i < view->moments_count; i++)
		moments[i].tick = byte_reader_varint32(in) - 1;
	for (uint64_t i = 0; i < view->moments_count; i++)
		moments[i].link = byte_reader_varint32(in);
}

typedef void decode_f(struct tables_image *image, struct byte_reader *in, uint16_t version);

/* In the order of the types: later ones lean on the counts of earlier ones. */
static decode_f *const decoders[TABLES_SECTIONS_END] = {
	[TABLES_SECTION_STRINGS] = decode_strings,	 [TABLES_SECTION_LABELS] = decode_labels,
	[TABLES_SECTION_GROUPS] = decode_groups,	 [TABLES_SECTION_SERIES] = decode_series,
	[TABLES_SECTION_FRAMES] = decode_frames,	 [TABLES_SECTION_NODES] = decode_nodes,
	[TABLES_SECTION_REPORTS] = decode_reports,	 [TABLES_SECTION_STACKS] = decode_stacks,
	[TABLES_SECTION_ROW_LABELS] = decode_row_labels, [TABLES_SECTION_VALUES] = decode_values,
	[TABLES_SECTION_LINKS] = decode_links,		 [TABLES_SECTION_MOMENTS] = decode_moments,
};

struct section_header {
	uint32_t type;
	uint16_t version, compression;
	uint64_t raw_bytes, stored_bytes;
	struct slice stored;
};

static int take_section(struct byte_reader *in, struct section_header *ret, struct err *err)
{
	const unsigned char *begin = in->at;
	uint32_t crc, want;

	ret->type = byte_reader_u32(in);
	ret->version = byte_reader_u16(in);
	ret->compression = byte_reader_u16(in);
	ret->raw_bytes = byte_reader_u64(in);
	ret->stored_bytes = byte_reader_u64(in);
	want = byte_reader_u32(in);
	ret->stored = byte_reader_bytes(in, ret->stored_bytes);
	if (in->failed)
		return err_set(err, ERR_CORRUPT, "section of type %u is cut short", ret->type);
	crc = hash_crc32c(0, begin, TABLES_SECTION_HEADER_BYTES - 4);
	crc = hash_crc32c(crc, ret->stored.data, ret->stored.len);
	if (crc != want)
		return err_set(err, ERR_CORRUPT, "section of type %u: checksum mismatch",
			       ret->type);
	return 0;
}

static int unpack_section(struct decoder *decoder, const struct section_header *header,
			  struct err *err)
{
	struct strbuf *plain = &decoder->plain[header->type];

	if (header->compression > 1)
		return err_set(err, ERR_UNSUPPORTED, "compression %u", header->compression);
	if (header->compression == 0)
		decoder->raw[header->type] = header->stored;
	else if (compress_unzstd(header->stored, header->raw_bytes, plain, err))
		return err_set(err, ERR_CORRUPT, "bytes do not decompress");
	else
		decoder->raw[header->type] = strbuf_slice(plain);
	if (decoder->raw[header->type].len != header->raw_bytes)
		return err_set(err, ERR_CORRUPT, "length differs from the stated one");
	return 0;
}

static int take_sections(struct decoder *decoder, struct slice bytes, uint64_t max_raw_bytes,
			 struct err *err)
{
	struct byte_reader in = byte_reader_of(bytes);
	uint64_t left = max_raw_bytes;

	while (byte_reader_left(&in)) {
		struct section_header header;
		int rc = take_section(&in, &header, err);

		if (rc)
			return rc;
		if (!header.type || header.type >= TABLES_SECTIONS_END)
			continue;
		if (decoder->present[header.type])
			return err_set(err, ERR_CORRUPT, "section \"%s\" occurs twice",
				       section_names[header.type]);
		if (header.raw_bytes > left)
			return err_set(err, ERR_LIMIT,
				       "section \"%s\" would take more than %llu bytes",
				       section_names[header.type], (unsigned long long)left);
		left -= header.raw_bytes;
		decoder->present[header.type] = true;
		decoder->versions[header.type] = header.version;
		rc = unpack_section(decoder, &header, err);
		if (rc)
			return err_wrap(err, "section \"%s\"", section_names[header.type]), rc;
	}
	return 0;
}

static int decode_section(struct decoder *decoder, uint32_t type, struct err *err)
{
	struct byte_reader in = byte_reader_of(decoder->raw[type]);
	uint16_t newest = type == TABLES_SECTION_STACKS	  ? STACKS_VERSION_UNSORTED
			  : type == TABLES_SECTION_FRAMES ? FRAMES_VERSION_CONSTANTS
							  : SECTION_VERSION;

	if (type >= TABLES_SECTION_LINKS && !decoder->present[TABLES_SECTION_LINKS] &&
	    !decoder->present[TABLES_SECTION_MOMENTS])
		return 0; /* neither or both */
	if (!decoder->present[type])
		return err_set(err, ERR_CORRUPT, "section \"%s\" is missing", section_names[type]);
	if (!decoder->versions[type] || decoder->versions[type] > newest)
		return err_set(err, ERR_UNSUPPORTED,
			       "section \"%s\" has version %u, newer than this firn",
			       section_names[type], decoder->versions[type]);
	decoders[type](decoder->image, &in, decoder->versions[type]);
	if (in.failed || byte_reader_left(&in))
		return err_set(err, ERR_CORRUPT, "section \"%s\": malformed near byte %zu",
			       section_names[type],
			       (size_t)(in.at - (in.end - decoder->raw[type].len)));
	return 0;
}

int tables_decode(struct slice bytes, uint64_t max_raw_bytes, struct tables_image *ret,
		  struct err *err)
{
	struct tables_image image = { 0 };
	struct decoder decoder = { .image = &image };
	int rc = take_sections(&decoder, bytes, max_raw_bytes, err);

	for (uint32_t type = TABLES_SECTION_STRINGS; !rc && type < TABLES_SECTIONS_END; type++) {
		rc = decode_section(&decoder, type, err);
		strbuf_free(&decoder.plain[type]);
	}
	for (uint32_t type = 0; type < TABLES_SECTIONS_END; type++)
		strbuf_free(&decoder.plain[type]);
	if (!rc)
		rc = tables_check(&image.view, err);
	if (rc)
		tables_image_free(&image);
	else
		*ret = image;
	return rc;
}

void tables_image_free(struct tables_image *image)
{
	const void *const arrays[] = {
		image->view.string_bytes, image->view.strings, image->view.labels,
		image->view.label_sets,	  image->view.columns, image->view.groups,
		image->view.series,	  image->view.frames,  image->view.nodes,
		image->view.reports,	  image->view.rows,    image->view.values,
		image->view.totals,	  image->view.moments, image->view.links,
	};

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		free((void *)(uintptr_t)arrays[i]);
	*image = (struct tables_image){ 0 };
}
