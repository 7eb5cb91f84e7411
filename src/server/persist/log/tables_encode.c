/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writing half of tables_codec.h. Integers are LEB128, signed ones zigzag. Fields of one kind
 * lie together, because neighbours are then alike and zstd finds it. Ids that usually count up
 * are kept as the distance from the expected next one, so that the usual case is a run of zeros.
 */
#include <assert.h>

#include "base/hash.h"
#include "codec/archive/compress.h"
#include "server/persist/log/tables_codec_int.h"

#define VARINT_BYTES_MAX 10u

/* Where numbers go: room for all of a run is asked for at once, so that each is a few stores. */
struct run {
	struct strbuf *out;
	char *at;
};

static struct run begin_run(struct strbuf *out, uint64_t numbers)
{
	return (struct run){ out, strbuf_reserve(out, numbers * VARINT_BYTES_MAX) };
}

static void end_run(struct run *run)
{
	assert(run->at < run->out->data + run->out->capacity);
	*run->at = '\0';
	run->out->len = (size_t)(run->at - run->out->data);
}

static inline void put(struct run *run, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*run->at++ = (char)(value | 0x80);
	*run->at++ = (char)value;
}

static inline void put_signed(struct run *run, int64_t value)
{
	put(run, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

static inline void put_difference(struct run *run, uint64_t value, uint64_t *previous)
{
	put_signed(run, (int64_t)(value - *previous));
	*previous = value;
}

/* Encoders of one section each; the result is the version. */

static uint16_t encode_strings(const struct tables_view *view, struct strbuf *out)
{
	strbuf_add_varint(out, view->strings_count);
	for (uint32_t i = 0; i < view->strings_count; i++)
		strbuf_add_varint(out, view->strings[i].len);
	for (uint32_t i = 0; i < view->strings_count; i++)
		strbuf_add_slice(out, tables_text(view, i));
	return SECTION_VERSION;
}

static uint16_t encode_labels(const struct tables_view *view, struct strbuf *out)
{
	strbuf_add_varint(out, view->label_sets_count);
	for (uint32_t i = 0; i < view->label_sets_count; i++)
		strbuf_add_varint(out, view->label_sets[i].label_count);
	for (uint32_t i = 0; i < view->label_sets_count; i++) {
		const struct label_set *set = &view->label_sets[i];

		for (uint32_t j = 0; j < set->label_count; j++) {
			const struct label *label = &view->labels[set->label_first + j];

			strbuf_add_varint(out, ((uint64_t)label->name << 1) | label->numeric);
			strbuf_add_varint(out, label->value);
			if (label->numeric) {
				strbuf_add_varint(out, label->unit);
				strbuf_add_zigzag(out, label->number);
			}
		}
	}
	return SECTION_VERSION;
}

static uint16_t encode_groups(const struct tables_view *view, struct strbuf *out)
{
	strbuf_add_varint(out, view->groups_count);
	for (uint32_t i = 0; i < view->groups_count; i++) {
		const struct group *group = &view->groups[i];

		strbuf_add_varint(out, group->column_count);
		strbuf_add_varint(out, group->name);
		strbuf_add_varint(out, group->period_type);
		strbuf_add_varint(out, group->period_unit);
		strbuf_add_zigzag(out, group->period);
		for (uint32_t j = 0; j < group->column_count; j++) {
			const struct column *column = &view->columns[group->column_first + j];

			strbuf_add_varint(out, column->sample_type);
			strbuf_add_varint(out, column->sample_unit);
			strbuf_add_varint(out, column->kind);
		}
	}
	return SECTION_VERSION;
}

static uint16_t encode_series(const struct tables_view *view, struct strbuf *out)
{
	uint64_t label_set = 0, group = 0;
	struct run run;

	strbuf_add_varint(out, view->series_count);
	run = begin_run(out, (uint64_t)view->series_count * 2);
	for (uint32_t i = 0; i < view->series_count; i++) {
		put_difference(&run, view->series[i].label_set, &label_set);
		put_difference(&run, view->series[i].group, &group);
	}
	end_run(&run);
	return SECTION_VERSION;
}

/* Most fields are the same in all frames of a batch: those take one number. */
static struct frame differences_of(const struct tables_view *view)
{
	struct frame differences = { 0 };

	for (uint32_t i = 1; i < view->frames_count; i++)
		for (size_t field = 0; field < FRAME_FIELDS; field++)
			*frame_field(&differences, field) |= *frame_field(&view->frames[0], field) ^
							     *frame_field(&view->frames[i], field);
	return differences;
}

static uint16_t encode_frames(const struct tables_view *view, struct strbuf *out)
{
	struct frame differences = differences_of(view);
	uint64_t address = 0;
	struct run run;

	strbuf_add_varint(out, view->frames_count);
	run = begin_run(out, view->frames_count);
	for (uint32_t i = 0; i < view->frames_count; i++)
		put_difference(&run, view->frames[i].address, &address);
	end_run(&run);
	for (size_t field = 0; field < FRAME_FIELDS; field++) {
		bool constant = !*frame_field(&differences, field);
		uint32_t count = constant && view->frames_count ? 1 : view->frames_count;
		uint64_t previous = 0;

		run = begin_run(out, count + (uint64_t)1);
		put(&run, constant);
		for (uint32_t i = 0; i < count; i++)
			put_difference(&run, *frame_field(&view->frames[i], field), &previous);
		end_run(&run);
	}
	return FRAMES_VERSION_CONSTANTS;
}

static uint16_t encode_nodes(const struct tables_view *view, struct strbuf *out)
{
	int64_t next_frame = 0; /* when nodes and frames are made together */
	struct run run;

	strbuf_add_varint(out, view->nodes_count);
	run = begin_run(out, (uint64_t)view->nodes_count * 2);
	for (uint32_t i = 1; i < view->nodes_count; i++)
		put(&run, i - 1 - view->nodes[i].parent);
	for (uint32_t i = 1; i < view->nodes_count; i++) {
		int64_t frame = view->nodes[i].frame;

		put_signed(&run, next_frame - frame);
		if (frame >= next_frame)
			next_frame = frame + 1;
	}
	end_run(&run);
	return SECTION_VERSION;
}

static uint16_t encode_reports(const struct tables_view *view, struct strbuf *out)
{
	uint64_t series = 0, start = 0, duration = 0, rows = 0;
	struct run run;

	strbuf_add_varint(out, view->reports_count);
	run = begin_run(out, (uint64_t)view->reports_count * 4);
	for (uint32_t i = 0; i < view->reports_count; i++)
		put_difference(&run, view->reports[i].series, &series);
	for (uint32_t i = 0; i < view->reports_count; i++)
		put_difference(&run, (uint64_t)view->reports[i].start_ns, &start);
	for (uint32_t i = 0; i < view->reports_count; i++)
		put_difference(&run, (uint64_t)view->reports[i].duration_ns, &duration);
	for (uint32_t i = 0; i < view->reports_count; i++)
		put_difference(&run, view->reports[i].row_count, &rows);
	end_run(&run);
	for (uint32_t i = 0; i < view->reports_count; i++)
		strbuf_add_u64(out, view->reports[i].batch_id);
	run = begin_run(out, view->totals_count);
	for (uint64_t i = 0; i < view->totals_count; i++)
		put_signed(&run, view->totals[i]);
	end_run(&run);
	return SECTION_VERSION;
}

static bool rows_are_sorted(const struct tables_view *view)
{
	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct row *rows = &view->rows[view->reports[i].row_first];

		for (uint32_t j = 1; j < view->reports[i].row_count; j++)
			if (rows[j].stack < rows[j - 1].stack)
				return false;
	}
	return true;
}

static uint16_t encode_stacks(const struct tables_view *view, struct strbuf *out)
{
	bool sorted = rows_are_sorted(view);

	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct row *rows = &view->rows[view->reports[i].row_first];
		struct run run = begin_run(out, view->reports[i].row_count);
		uint64_t previous = 0;

		for (uint32_t j = 0; j < view->reports[i].row_count; j++) {
			if (sorted) {
				put(&run, rows[j].stack - previous);
				previous = rows[j].stack;
			} else {
				put_difference(&run, rows[j].stack, &previous);
			}
		}
		end_run(&run);
	}
	return sorted ? STACKS_VERSION_SORTED : STACKS_VERSION_UNSORTED;
}

/* (label set, length of the run) pairs. */
static uint16_t encode_row_labels(const struct tables_view *view, struct strbuf *out)
{
	for (uint64_t i = 0, run; i < view->rows_count; i += run) {
		uint32_t label_set = view->rows[i].label_set;

		for (run = 1; i + run < view->rows_count; run++)
			if (view->rows[i + run].label_set != label_set)
				break;
		strbuf_add_varint(out, label_set);
		strbuf_add_varint(out, run);
	}
	return SECTION_VERSION;
}

static uint16_t encode_values(const struct tables_view *view, struct strbuf *out)
{
	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];
		uint32_t columns = tables_series_columns(view, report->series);
		struct run run = begin_run(out, (uint64_t)report->row_count * columns);

		for (uint32_t column = 0; column < columns; column++)
			for (uint32_t row = 0; row < report->row_count; row++)
				put_signed(&run, view->values[report->value_first +
							      (uint64_t)row * columns + column]);
		end_run(&run);
	}
	return SECTION_VERSION;
}

static uint16_t encode_links(const struct tables_view *view, struct strbuf *out)
{
	assert(view->links_count); /* the first is none */
	strbuf_add_varint(out, view->links_count - 1);
	for (uint32_t i = 1; i < view->links_count; i++)
		strbuf_add(out, (const char *)&view->links[i], sizeof(view->links[i]));
	return SECTION_VERSION;
}

static uint16_t encode_moments(const struct tables_view *view, struct strbuf *out)
{
	struct run run = begin_run(out, view->reports_count + 3 * view->moments_count);

	for (uint32_t i = 0; i < view->reports_count; i++)
		put(&run, view->reports[i].moment_count);
	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct moment *at = &view->moments[view->reports[i].moment_first];
		uint32_t row = 0;

		for (uint32_t j = 0; j < view->reports[i].moment_count; j++) {
			put(&run, at[j].row - row);
			row = at[j].row;
		}
	}
	for (uint64_t i = 0; i < view->moments_count; i++)
		put(&run, (uint32_t)(view->moments[i].tick + 1)); /* none is 0 */
	for (uint64_t i = 0; i < view->moments_count; i++)
		put(&run, view->moments[i].link);
	end_run(&run);
	return SECTION_VERSION;
}

typedef uint16_t encode_f(const struct tables_view *view, struct strbuf *out);

static encode_f *const encoders[TABLES_SECTIONS_END] = {
	[TABLES_SECTION_STRINGS] = encode_strings,	 [TABLES_SECTION_LABELS] = encode_labels,
	[TABLES_SECTION_GROUPS] = encode_groups,	 [TABLES_SECTION_SERIES] = encode_series,
	[TABLES_SECTION_FRAMES] = encode_frames,	 [TABLES_SECTION_NODES] = encode_nodes,
	[TABLES_SECTION_REPORTS] = encode_reports,	 [TABLES_SECTION_STACKS] = encode_stacks,
	[TABLES_SECTION_ROW_LABELS] = encode_row_labels, [TABLES_SECTION_VALUES] = encode_values,
	[TABLES_SECTION_LINKS] = encode_links,		 [TABLES_SECTION_MOMENTS] = encode_moments,
};

/* Header fields before the checksum. */
static void add_header(struct strbuf *out, uint32_t type, uint16_t version, bool compressed,
		       uint64_t raw_bytes, uint64_t stored_bytes)
{
	strbuf_add_u32(out, type);
	strbuf_add_u32(out, version | (compressed ? 1u << 16 : 0));
	strbuf_add_u64(out, raw_bytes);
	strbuf_add_u64(out, stored_bytes);
}

static void add_section(struct strbuf *out, uint32_t type, uint16_t version,
			const struct strbuf *raw, const struct strbuf *packed)
{
	bool compressed = packed->len && packed->len < raw->len;
	const struct strbuf *stored = compressed ? packed : raw;
	size_t header = out->len;
	uint32_t crc;

	add_header(out, type, version, compressed, raw->len, stored->len);
	crc = hash_crc32c(0, out->data + header, out->len - header);
	crc = hash_crc32c(crc, stored->data ? stored->data : "", stored->len);
	strbuf_add_u32(out, crc);
	strbuf_add(out, stored->data, stored->len);
}

void tables_encode(const struct tables_view *view, int zstd_level, struct strbuf *out,
		   struct tables_layout *ret_layout)
{
	struct strbuf raw = { 0 }, packed = { 0 };
	struct tables_layout layout = { 0 };
	size_t begin = out->len;

	uint32_t end = view->moments_count ? TABLES_SECTIONS_END : TABLES_SECTION_LINKS;

	assert(view->strings_count && view->label_sets_count && view->nodes_count);
	for (uint32_t type = TABLES_SECTION_STRINGS; type < end; type++) {
		size_t from = out->len;
		uint16_t version;

		strbuf_clear(&raw);
		strbuf_clear(&packed);
		version = encoders[type](view, &raw);
		if (zstd_level && raw.len)
			compress_zstd(strbuf_slice(&raw), zstd_level, &packed);
		add_section(out, type, version, &raw, &packed);
		layout.sections[layout.count++] =
			(struct tables_section){ type, from - begin, out->len - from };
	}
	strbuf_free(&raw);
	strbuf_free(&packed);
	if (ret_layout)
		*ret_layout = layout;
}
