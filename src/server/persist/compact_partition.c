/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition of a compaction: count what is used, merge dictionaries, write reports and sums.
 * Reports are read once to count and once to write, and again for each level of sums.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/compact_int.h"
#include "server/persist/dictionary_merge.h"
#include "server/persist/report_stream.h"
#include "server/persist/rollup.h"

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
	uint64_t reports;
};

struct partition {
	struct compaction *compaction;
	struct input *inputs;
	size_t count;
	struct dictionary merged;
	bool is_merged;
	struct report_source *sources;
	struct report_stream *stream;
	struct rollup_count counted;
};

static int open_input(struct partition *partition, struct input *input, struct err *err)
{
	struct compaction *compaction = partition->compaction;
	const struct compact_job *job = compaction->job;
	uint32_t number = input->source->input;
	int rc = part_reader_segment(compaction->readers[number], input->source->partition,
				     SEGMENT_RAW, INT64_MIN, INT64_MAX, &input->segment, err);

	if (rc)
		return rc;
	input->open = true;
	rc = segment_load_stacks(&input->segment, err);
	if (rc)
		return rc;
	tombstones_apply(job->tombstones, &job->inputs[number], &input->segment.view,
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

static int prepare_inputs(struct partition *partition, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < partition->count; i++) {
		struct input *input = &partition->inputs[i];

		rc = open_input(partition, input, err);
		if (!rc)
			rc = count_input(partition, input, err);
		if (rc)
			partition->compaction->failed = input->source->input;
	}
	return rc;
}

static int merge(struct partition *partition, struct err *err)
{
	struct dictionary_input *inputs = mem_new_array(struct dictionary_input, partition->count);
	int rc;

	for (size_t i = 0; i < partition->count; i++)
		inputs[i] = partition->inputs[i].dictionary;
	rc = dictionary_merge(inputs, partition->count, &partition->merged, err);
	partition->is_merged = !rc;
	for (size_t i = 0; !rc && i < partition->count; i++)
		partition->inputs[i].dictionary = inputs[i];
	free(inputs);
	return rc;
}

static void map_slots(struct partition *partition)
{
	partition->sources = mem_new_array(struct report_source, partition->count);
	for (size_t i = 0; i < partition->count; i++) {
		struct input *input = &partition->inputs[i];
		uint32_t count = input->segment.slots_count;

		input->nodes_of_slots = mem_new_array(uint32_t, count);
		for (uint32_t s = 0; s < count; s++)
			input->nodes_of_slots[s] =
				input->dictionary.nodes[segment_node(&input->segment, s)];
		partition->sources[i] = (struct report_source){
			.segment = &input->segment,
			.series = input->dictionary.series,
			.nodes = input->nodes_of_slots,
			.label_sets = input->dictionary.label_sets,
		};
	}
}

static int write_raw(struct partition *partition, struct err *err)
{
	struct compaction *compaction = partition->compaction;
	struct part_report report;
	int rc = report_stream_begin(partition->stream, err);

	while (!rc) {
		int more = report_stream_next(partition->stream, &report, err);

		if (more <= 0)
			return more;
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
	compaction->partitions_written++;
	map_slots(partition);
	partition->stream =
		report_stream_new(partition->sources, partition->count,
				  view->groups[0].column_count, compaction->job->throttle);
	rollup_count_begin(&partition->counted, view->nodes_count);
	rc = write_levels(partition, view, err);
	if (rc == -ERR_CORRUPT)
		compaction->failed =
			partition->inputs[report_stream_failed(partition->stream)].source->input;
	return rc ? rc : part_writer_end_partition(compaction->writer, err);
}

static void free_input(struct input *input)
{
	dictionary_input_free_maps(&input->dictionary);
	tombstone_deletions_free(&input->deletions);
	free(input->rows_of_node);
	free(input->series_used);
	free(input->label_sets_used);
	free(input->nodes_of_slots);
	if (input->open)
		part_reader_drop_segment(&input->segment);
}

static void free_partition(struct partition *partition)
{
	report_stream_free(partition->stream);
	rollup_count_free(&partition->counted);
	if (partition->is_merged)
		dictionary_free(&partition->merged);
	for (size_t i = 0; i < partition->count; i++)
		free_input(&partition->inputs[i]);
	free(partition->inputs);
	free(partition->sources);
}

int compact_partition(struct compaction *compaction, const struct compact_source *sources,
		      size_t sources_count, struct err *err)
{
	struct partition partition = { .compaction = compaction, .count = sources_count };
	uint64_t reports = 0;
	int rc;

	partition.inputs = mem_new_array(struct input, sources_count);
	for (size_t i = 0; i < sources_count; i++)
		partition.inputs[i].source = &sources[i];
	rc = prepare_inputs(&partition, err);
	for (size_t i = 0; i < sources_count; i++)
		reports += partition.inputs[i].reports;
	if (!rc && reports) {
		rc = merge(&partition, err);
		if (!rc)
			rc = write_partition(&partition, err);
	}
	free_partition(&partition);
	return rc;
}
