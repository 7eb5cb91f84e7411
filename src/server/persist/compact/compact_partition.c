/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition of a compaction: count what is used, merge dictionaries, write reports and sums.
 * Reports are read once to count and once to write, and again for each level of sums.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/compact/compact_int.h"
#include "server/persist/part/dictionary_merge.h"
#include "server/persist/compact/report_stream.h"
#include "server/persist/compact/rollup.h"

/* A source with what is known of it. */
struct input {
	const struct compact_source *source;
	struct segment segment;
	bool open;
	struct tombstone_deletions deletions;
	struct dictionary_input dictionary;
	uint64_t *rows_of_node;
	uint8_t *series_used, *label_sets_used;
	uint32_t *nodes_of_slots; /* in the merged dictionary */
	uint32_t slots_count;
	uint64_t reports;
	size_t buffer_bytes; /* to read its blocks, one after the other */
};

struct partition {
	struct compaction *compaction;
	struct input *inputs;
	size_t count;
	struct dictionary_merge *merge;
	size_t merged_inputs; /* so far, and the memory of what stays of each: */
	size_t maps_bytes, buffers_bytes;
	struct dictionary merged;
	bool is_merged;
	struct report_source *sources; /* inputs that have reports */
	size_t sources_count;
	uint32_t *inputs_of_sources;
	struct report_stream *stream;
	struct rollup_count counted;
};

/* Without stacks: they are in memory of one input at a time, while it is counted. */
static int open_input(struct partition *partition, struct input *input, struct err *err)
{
	struct compaction *compaction = partition->compaction;
	int rc;

	assert(!input->open);
	rc = part_reader_segment(compaction->readers[input->source->input],
				 input->source->partition, SEGMENT_RAW, INT64_MIN, INT64_MAX,
				 &input->segment, err);
	if (rc)
		return rc;
	input->open = true;
	input->segment.deletions = input->deletions.items;
	input->segment.deletions_count = input->deletions.count;
	return 0;
}

static void close_input(struct partition *partition, struct input *input)
{
	if (!input->open)
		return;
	part_reader_drop_segment(&input->segment);
	part_reader_trim(partition->compaction->readers[input->source->input]);
	input->open = false;
}

static int open_to_count(struct partition *partition, struct input *input, struct err *err)
{
	const struct compact_job *job = partition->compaction->job;
	int rc = open_input(partition, input, err);

	if (!rc)
		rc = segment_load_stacks(&input->segment, err);
	if (rc)
		return rc;
	tombstones_apply(job->tombstones, &job->inputs[input->source->input], &input->segment.view,
			 &input->deletions);
	input->segment.deletions = input->deletions.items;
	input->segment.deletions_count = input->deletions.count;
	return 0;
}

static void count_block(struct input *input, const struct segment_block *block, uint64_t *slots)
{
	for (uint32_t i = 0; i < block->reports_count; i++) {
		const struct segment_report *report = &block->reports[i];

		input->series_used[report->series] = 1;
		for (uint32_t r = 0; r < report->row_count; r++)
			slots[block->slots[(report->row_first + r) * block->row_stride]]++;
		for (uint32_t r = 0; block->label_sets && r < report->row_count; r++)
			input->label_sets_used[block->label_sets[(report->row_first + r) *
								 block->row_stride]] = 1;
	}
	input->reports += block->reports_count;
}

static int count_blocks(struct partition *partition, struct input *input, uint64_t *slots,
			struct err *err)
{
	struct compaction *compaction = partition->compaction;
	struct segment_buffer buffer = { 0 };
	int rc = 0;

	for (uint32_t b = 0; !rc && b < input->segment.blocks_count; b++) {
		struct segment_zone zone = segment_zone(&input->segment, b);
		struct segment_block block;

		rc = throttle_pause(compaction->job->throttle, zone.bytes, err);
		if (!rc)
			rc = segment_read(&input->segment, b, SEGMENT_ROWS, &buffer, &block, err);
		if (rc)
			break;
		count_block(input, &block, slots);
		compaction->reports_deleted += zone.reports - block.reports_count;
	}
	input->buffer_bytes = buffer.capacity + buffer.heads_capacity + buffer.decompressor_bytes;
	segment_buffer_free(&buffer);
	return rc;
}

/* What the reports that stay use of the input's dictionaries. */
static int count_input(struct partition *partition, struct input *input, struct err *err)
{
	const struct tables_view *view = &input->segment.view;
	uint32_t slots_count = input->segment.slots_count;
	uint64_t *slots = mem_new_array(uint64_t, slots_count);
	int rc;

	input->rows_of_node = mem_new_array(uint64_t, view->nodes_count);
	input->series_used = mem_new_array(uint8_t, view->series_count);
	input->label_sets_used = mem_new_array(uint8_t, view->label_sets_count);
	rc = count_blocks(partition, input, slots, err);
	for (uint32_t s = 0; !rc && s < slots_count; s++)
		input->rows_of_node[segment_node(&input->segment, s)] += slots[s];
	free(slots);
	input->dictionary = (struct dictionary_input){
		.view = view,
		.rows_of_node = input->rows_of_node,
		.series_used = input->series_used,
		.label_sets_used = input->label_sets_used,
	};
	return rc;
}

/* Some of the inputs are another job's then: one alone has to do. */
static int check_memory(const struct partition *partition, struct err *err)
{
	size_t max = partition->compaction->job->memory_bytes;
	size_t bytes = 2 * dictionary_merge_bytes(partition->merge) + partition->maps_bytes +
		       partition->buffers_bytes;

	max = max ? max : COMPACT_MEMORY_BYTES_DEFAULT;
	if (partition->merged_inputs < 2 || bytes <= max)
		return 0;
	return err_set(err, ERR_LIMIT,
		       "the stacks of %zu of %zu parts take %zu MB of memory together, limit %zu",
		       partition->merged_inputs, partition->count, bytes >> 20, max >> 20);
}

/* What was counted goes into the merged dictionary; the maps stay. */
static int merge_input(struct partition *partition, struct input *input, struct err *err)
{
	uint32_t count = input->segment.slots_count;
	int rc = dictionary_merge_add(partition->merge, &input->dictionary, err);

	if (rc)
		return rc;
	assert(!input->nodes_of_slots);
	input->slots_count = count;
	input->nodes_of_slots = mem_new_array(uint32_t, count);
	for (uint32_t s = 0; s < count; s++)
		input->nodes_of_slots[s] =
			input->dictionary.nodes[segment_node(&input->segment, s)];
	partition->merged_inputs++;
	partition->buffers_bytes += input->buffer_bytes;
	partition->maps_bytes +=
		sizeof(uint32_t) * ((size_t)count + input->segment.view.series_count +
				    input->segment.view.label_sets_count);
	return check_memory(partition, err);
}

static void free_counts(struct input *input)
{
	free(input->rows_of_node);
	free(input->series_used);
	free(input->label_sets_used);
	free(input->dictionary.nodes);
	input->rows_of_node = NULL;
	input->series_used = input->label_sets_used = NULL;
	input->dictionary.nodes = NULL;
}

static int prepare_input(struct partition *partition, struct input *input, struct err *err)
{
	int rc = open_to_count(partition, input, err);

	if (!rc)
		rc = count_input(partition, input, err);
	if (rc)
		partition->compaction->failed = input->source->input;
	if (!rc && input->reports)
		rc = merge_input(partition, input, err);
	free_counts(input);
	close_input(partition, input);
	return rc;
}

static void finish_merge(struct partition *partition)
{
	assert(partition->merge && !partition->is_merged);
	dictionary_merge_finish(partition->merge, &partition->merged);
	partition->merge = NULL;
	partition->is_merged = true;
}

/* The inputs that have reports, open again, with maps to what was merged. */
static int make_sources(struct partition *partition, struct err *err)
{
	partition->sources = mem_new_array(struct report_source, partition->count);
	partition->inputs_of_sources = mem_new_array(uint32_t, partition->count);
	for (size_t i = 0; i < partition->count; i++) {
		struct input *input = &partition->inputs[i];
		int rc;

		if (!input->reports)
			continue;
		rc = open_input(partition, input, err);
		if (rc) {
			partition->compaction->failed = input->source->input;
			return rc;
		}
		dictionary_map_nodes(&partition->merged, input->nodes_of_slots, input->slots_count);
		dictionary_map_series(&partition->merged, input->dictionary.series,
				      input->segment.view.series_count);
		partition->inputs_of_sources[partition->sources_count] = input->source->input;
		partition->sources[partition->sources_count++] = (struct report_source){
			.segment = &input->segment,
			.series = input->dictionary.series,
			.nodes = input->nodes_of_slots,
			.label_sets = input->dictionary.label_sets,
		};
	}
	assert(partition->sources_count && partition->sources_count <= partition->count);
	return 0;
}

static int write_raw(struct partition *partition, struct err *err)
{
	struct compaction *compaction = partition->compaction;
	struct part_report report;
	int rc = report_stream_begin(partition->stream, SEGMENT_MOMENTS, err);

	while (!rc) {
		int more = report_stream_next(partition->stream, &report, err);

		if (more <= 0)
			return more;
		if (report.start_ns < compaction->job->moments_from_ns)
			report.moment_count = 0;
		rollup_count_report(&partition->counted, &report);
		rc = part_writer_report(compaction->writer, SEGMENT_RAW, &report, err);
		compaction_tell(compaction, report.row_count);
	}
	return rc;
}

static int write_levels(struct partition *partition, const struct tables_view *view,
			struct err *err)
{
	enum part_tier tier = partition->compaction->job->tier;
	struct rollup_job job = {
		.stream = partition->stream,
		.writer = partition->compaction->writer,
		.view = view,
		.count = &partition->counted,
		.days = tier >= PART_DAY,
	};
	int rc = write_raw(partition, err);

	return rc || tier < PART_HOURS ? rc : rollup_write(&job, err);
}

static int write_partition(struct partition *partition, struct err *err)
{
	struct compaction *compaction = partition->compaction;
	const struct compact_source *first = partition->inputs[0].source;
	const struct tables_view *view = &partition->merged.view;
	struct part_dictionary dictionary = {
		.key = part_reader_partition(compaction->readers[first->input], first->partition)
			       ->key,
		.view = view,
		.rows_of_node = partition->merged.rows_of_node,
	};
	int rc = part_writer_begin_partition(compaction->writer, &dictionary, err);

	if (rc)
		return rc;
	assert(view->groups_count == 1);
	compaction->partitions_written++;
	partition->stream =
		report_stream_new(partition->sources, partition->sources_count,
				  view->groups[0].column_count, compaction->job->throttle);
	rollup_count_begin(&partition->counted, view->nodes_count);
	rc = write_levels(partition, view, err);
	if (rc == -ERR_CORRUPT)
		compaction->failed =
			partition->inputs_of_sources[report_stream_failed(partition->stream)];
	return rc ? rc : part_writer_end_partition(compaction->writer, err);
}

static void free_input(struct partition *partition, struct input *input)
{
	free_counts(input);
	dictionary_input_free_maps(&input->dictionary);
	close_input(partition, input);
	tombstone_deletions_free(&input->deletions);
	free(input->nodes_of_slots);
}

static void free_partition(struct partition *partition)
{
	report_stream_free(partition->stream);
	rollup_count_free(&partition->counted);
	dictionary_merge_free(partition->merge);
	if (partition->is_merged)
		dictionary_free(&partition->merged);
	for (size_t i = 0; i < partition->count; i++)
		free_input(partition, &partition->inputs[i]);
	free(partition->inputs);
	free(partition->sources);
	free(partition->inputs_of_sources);
}

int compact_partition(struct compaction *compaction, const struct compact_source *sources,
		      size_t sources_count, struct err *err)
{
	struct partition partition = { .compaction = compaction, .count = sources_count };
	uint64_t reports = 0;
	int rc = 0;

	assert(sources_count && compaction->writer);
	partition.inputs = mem_new_array(struct input, sources_count);
	partition.merge = dictionary_merge_new();
	for (size_t i = 0; !rc && i < sources_count; i++) {
		partition.inputs[i].source = &sources[i];
		rc = prepare_input(&partition, &partition.inputs[i], err);
		reports += partition.inputs[i].reports;
	}
	if (!rc && reports) {
		finish_merge(&partition);
		rc = make_sources(&partition, err);
		if (!rc)
			rc = write_partition(&partition, err);
	}
	free_partition(&partition);
	return rc;
}
