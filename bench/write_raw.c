/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/write_raw.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/archive/compress.h"
#include "codec/wire/pb.h"
#include "codec/profile/pprof.h"

#define GZIP_LEVEL 1

#define ADD(column, ...)                                                                           \
	do {                                                                                       \
		bool room_ = COLUMN_ROOM(column, 1, SIZE_MAX);                                     \
                                                                                                   \
		assert(room_);                                                                     \
		(column)->data[(column)->count++] = (__VA_ARGS__);                                 \
	} while (0)

struct writer {
	const struct tables_view *view;
	struct pprof profile;
	struct pprof_builder *builder;
	uint64_t *locations; /* by frame; 0 = not there yet */
	uint64_t *mappings;  /* by string of the file, likewise */
};

static int64_t text(struct writer *writer, uint32_t string)
{
	return pprof_builder_string(writer->builder, tables_text(writer->view, string));
}

static uint64_t mapping_of(struct writer *writer, const struct frame *frame)
{
	uint64_t *id = &writer->mappings[frame->mapping_file];

	if (!*id) {
		*id = writer->profile.mappings.count + 1;
		ADD(&writer->profile.mappings,
		    (struct pprof_mapping){ .id = *id,
					    .memory_limit = UINT64_MAX,
					    .filename = text(writer, frame->mapping_file),
					    .build_id = text(writer, frame->build_id) });
	}
	return *id;
}

static void add_line(struct writer *writer, struct pprof_location *location,
		     const struct frame *frame)
{
	uint64_t function = writer->profile.functions.count + 1;

	ADD(&writer->profile.functions,
	    (struct pprof_function){ .id = function,
				     .name = text(writer, frame->function),
				     .filename = text(writer, frame->file) });
	location->line_first = (uint32_t)writer->profile.lines.count;
	location->line_count = 1;
	ADD(&writer->profile.lines, (struct pprof_line){ function, frame->line, 0 });
}

static uint64_t location_of(struct writer *writer, uint32_t id)
{
	const struct frame *frame = &writer->view->frames[id];
	struct pprof_location location = { .address = frame->address };

	if (writer->locations[id])
		return writer->locations[id];
	location.id = writer->locations[id] = writer->profile.locations.count + 1;
	if (frame->mapping_file)
		location.mapping_id = mapping_of(writer, frame);
	if (frame->function)
		add_line(writer, &location, frame);
	ADD(&writer->profile.locations, location);
	return location.id;
}

static void add_samples(struct writer *writer, const struct report *report, uint32_t columns)
{
	struct pprof *profile = &writer->profile;

	for (uint32_t i = 0; i < report->row_count; i++) {
		struct pprof_sample sample = {
			.location_first = (uint32_t)profile->location_ids.count,
			.value_first = (uint32_t)profile->values.count,
			.value_count = columns,
		};
		uint32_t node = writer->view->rows[report->row_first + i].stack;

		for (; node; node = writer->view->nodes[node].parent)
			ADD(&profile->location_ids,
			    location_of(writer, writer->view->nodes[node].frame));
		sample.location_count =
			(uint32_t)profile->location_ids.count - sample.location_first;
		for (uint32_t j = 0; j < columns; j++)
			ADD(&profile->values,
			    writer->view->values[report->value_first + i * columns + j]);
		ADD(&profile->samples, sample);
	}
}

static void encode_profile(const struct tables_view *view, const struct report *report,
			   struct strbuf *out)
{
	const struct group *group = &view->groups[view->series[report->series].group];
	struct writer writer = { .view = view };

	pprof_init(&writer.profile);
	writer.builder = pprof_builder_new(&writer.profile);
	writer.locations = mem_new_array(uint64_t, view->frames_count + (size_t)1);
	writer.mappings = mem_new_array(uint64_t, view->strings_count);
	for (uint32_t i = 0; i < group->column_count; i++) {
		const struct column *column = &view->columns[group->column_first + i];

		ADD(&writer.profile.sample_types,
		    (struct pprof_value_type){ text(&writer, column->sample_type),
					       text(&writer, column->sample_unit) });
	}
	writer.profile.period_type = (struct pprof_value_type){ text(&writer, group->period_type),
								text(&writer, group->period_unit) };
	writer.profile.period = group->period;
	writer.profile.time_nanos = report->start_ns;
	writer.profile.duration_nanos = report->duration_ns;
	add_samples(&writer, report, group->column_count);
	pprof_encode(&writer.profile, out);
	pprof_builder_free(writer.builder);
	pprof_free(&writer.profile);
	free(writer.locations);
	free(writer.mappings);
}

static void put_label(struct strbuf *out, struct slice name, struct slice value)
{
	size_t begun = pb_begin(out, 1);

	pb_put_bytes(out, 1, name);
	pb_put_bytes(out, 2, value);
	pb_end(out, begun);
}

/* WriteRawRequest{ series = 2 { labels = 1 { label = 1 }; samples = 2 { raw_profile = 1 } } } */
void write_raw_encode(const struct tables_view *view, struct strbuf *out)
{
	for (uint32_t id = 0; id < view->reports_count; id++) {
		const struct report *report = &view->reports[id];
		const struct series *series = &view->series[report->series];
		const struct label_set *set = &view->label_sets[series->label_set];
		size_t begun = pb_begin(out, 2), inner = pb_begin(out, 1);
		struct strbuf plain = { 0 }, packed = { 0 };

		put_label(out, SLICE_LITERAL("__name__"),
			  tables_text(view, view->groups[series->group].name));
		for (uint32_t i = 0; i < set->label_count; i++) {
			const struct label *label = &view->labels[set->label_first + i];

			put_label(out, tables_text(view, label->name),
				  tables_text(view, label->value));
		}
		pb_end(out, inner);
		encode_profile(view, report, &plain);
		compress_gzip(strbuf_slice(&plain), GZIP_LEVEL, &packed);
		inner = pb_begin(out, 2);
		pb_put_bytes(out, 1, strbuf_slice(&packed));
		pb_end(out, inner);
		pb_end(out, begun);
		strbuf_free(&plain);
		strbuf_free(&packed);
	}
}
