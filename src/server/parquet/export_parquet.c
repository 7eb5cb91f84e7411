/* SPDX-License-Identifier: Apache-2.0 */
#include "server/parquet/export_parquet.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/wire/json.h"
#include "model/segment.h"

#define LABEL_NAMES_MAX 4096u
#define LABEL_PREFIX "label_"

#define NAME(text)                                                                                 \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}

/* Columns of the two tables. Labels come behind the rows' own. */
enum {
	ROW_REPORT,
	ROW_TYPE,
	ROW_START,
	ROW_DURATION,
	ROW_STACK,
	ROW_VALUE,
	ROW_SAMPLE_LABELS,
	ROW_LABELS
};
static const struct parquet_column row_columns[ROW_LABELS] = {
	[ROW_REPORT] = { NAME("report"), PARQUET_UINT64, PARQUET_REQUIRED },
	[ROW_TYPE] = { NAME("type"), PARQUET_TEXT, PARQUET_REQUIRED },
	[ROW_START] = { NAME("start"), PARQUET_TIMESTAMP_NS, PARQUET_REQUIRED },
	[ROW_DURATION] = { NAME("duration_ns"), PARQUET_INT64, PARQUET_REQUIRED },
	[ROW_STACK] = { NAME("stack"), PARQUET_UINT64, PARQUET_REQUIRED },
	[ROW_VALUE] = { NAME("value"), PARQUET_INT64, PARQUET_REQUIRED },
	[ROW_SAMPLE_LABELS] = { NAME("sample_labels"), PARQUET_TEXT, PARQUET_OPTIONAL },
};

enum {
	STACK_ID,
	STACK_KINDS,
	STACK_FUNCTIONS,
	STACK_FILES,
	STACK_LINES,
	STACK_MAPPINGS,
	STACK_BUILD_IDS,
	STACK_ADDRESSES,
	STACK_COLUMNS
};
static const struct parquet_column stack_columns[STACK_COLUMNS] = {
	[STACK_ID] = { NAME("stack"), PARQUET_UINT64, PARQUET_REQUIRED },
	[STACK_KINDS] = { NAME("kinds"), PARQUET_TEXT, PARQUET_LIST },
	[STACK_FUNCTIONS] = { NAME("functions"), PARQUET_TEXT, PARQUET_LIST },
	[STACK_FILES] = { NAME("files"), PARQUET_TEXT, PARQUET_LIST },
	[STACK_LINES] = { NAME("lines"), PARQUET_INT64, PARQUET_LIST },
	[STACK_MAPPINGS] = { NAME("mappings"), PARQUET_TEXT, PARQUET_LIST },
	[STACK_BUILD_IDS] = { NAME("build_ids"), PARQUET_TEXT, PARQUET_LIST },
	[STACK_ADDRESSES] = { NAME("addresses"), PARQUET_UINT64, PARQUET_LIST },
};

struct export
{
	const struct export_options *options;
	struct tables names; /* of labels: string id i is column ROW_LABELS + i - 1 */
	struct parquet *rows, *stacks;
	struct export_result result;
	struct strbuf text; /* of the row at hand */
};

/* What is known of the segment at hand. */
struct at_segment {
	struct segment *segment;
	uint32_t number;
	uint8_t *wanted; /* by series: bit 0 = its labels fit */
	uint8_t *used;	 /* by node: some row names it */
};

static int collect_names(struct export *export, const struct store_snapshot *snapshot,
			 struct err *err)
{
	for (size_t i = 0; i < snapshot->count; i++) {
		const struct tables_view *view = &snapshot->segments[i].view;

		for (uint32_t j = 0; j < view->series_count; j++) {
			const struct label_set *set = &view->label_sets[view->series[j].label_set];

			for (uint32_t k = 0; k < set->label_count; k++)
				tables_string(
					&export->names,
					tables_text(view, view->labels[set->label_first + k].name));
		}
		if (export->names.strings.count > LABEL_NAMES_MAX)
			return err_set(err, ERR_LIMIT,
				       "export: there are more than %u label names; choose fewer "
				       "series",
				       LABEL_NAMES_MAX);
	}
	return 0;
}

static void begin_files(struct export *export, const struct export_sink *rows,
			const struct export_sink *stacks, struct strbuf *column_names)
{
	struct tables_view names = tables_view_of(&export->names);
	size_t count = ROW_LABELS + names.strings_count - 1, at = 0;
	struct parquet_column *columns = mem_new_array(struct parquet_column, count);

	for (uint32_t i = 1; i < names.strings_count; i++) {
		strbuf_add_text(column_names, LABEL_PREFIX);
		strbuf_add_slice(column_names, tables_text(&names, i));
	}
	for (size_t i = 0; i < ROW_LABELS; i++)
		columns[i] = row_columns[i];
	for (uint32_t i = 1; i < names.strings_count; i++) {
		size_t len = strlen(LABEL_PREFIX) + names.strings[i].len;

		columns[ROW_LABELS + i - 1] =
			(struct parquet_column){ slice_from(column_names->data + at, len),
						 PARQUET_TEXT, PARQUET_OPTIONAL };
		at += len;
	}
	export->rows = parquet_new(columns, count, rows->write, rows->context);
	export->stacks = parquet_new(stack_columns, STACK_COLUMNS, stacks->write, stacks->context);
	free(columns);
}

static uint64_t stack_id(const struct at_segment *at, uint32_t node)
{
	return (uint64_t)at->number << 32 | node;
}

static void put_labels(struct export *export, const struct tables_view *view, uint32_t label_set)
{
	const struct label_set *set = &view->label_sets[label_set];

	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];
		uint32_t name = tables_string(&export->names, tables_text(view, label->name));

		parquet_put_text(export->rows, ROW_LABELS + name - 1,
				 tables_text(view, label->value));
	}
}

/* As a JSON object; a name that a row carries twice is there twice. */
static void put_sample_labels(struct export *export, const struct tables_view *view,
			      uint32_t label_set)
{
	const struct label_set *set = &view->label_sets[label_set];
	struct json json;

	if (!set->label_count)
		return;
	strbuf_clear(&export->text);
	json_begin(&json, &export->text);
	json_open_object(&json);
	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];

		json_put_key_slice(&json, tables_text(view, label->name));
		if (label->numeric)
			json_put_int(&json, label->number);
		else
			json_put_string(&json, tables_text(view, label->value));
	}
	json_close_object(&json);
	parquet_put_text(export->rows, ROW_SAMPLE_LABELS, strbuf_slice(&export->text));
}

static bool is_wanted_type(const struct export *export, const struct profile_type *type)
{
	const struct selector *selector = export->options->selector;

	return !selector || !selector->has_type || profile_type_equal(&selector->type, type);
}

/* The rows of one report in one column of its group. */
static int put_rows(struct export *export, const struct at_segment *at,
		    const struct segment_block *block, const struct segment_report *report,
		    uint32_t column, struct err *err)
{
	const struct tables_view *view = &at->segment->view;
	const struct series *series = &view->series[report->series];
	struct profile_type type = profile_type_of(view, series->group, column);
	uint64_t stride = block->value_stride ? block->value_stride
					      : view->groups[series->group].column_count;
	struct strbuf type_text = { 0 };
	int rc = 0;

	profile_type_format(&type_text, &type);
	for (uint64_t i = 0; i < report->row_count && !rc; i++) {
		uint64_t row = (report->row_first + i) * block->row_stride;
		uint32_t node = segment_node(at->segment, block->slots[row]);

		parquet_put(export->rows, ROW_REPORT, (int64_t) export->result.reports);
		parquet_put_text(export->rows, ROW_TYPE, strbuf_slice(&type_text));
		parquet_put(export->rows, ROW_START, report->start_ns);
		parquet_put(export->rows, ROW_DURATION, report->duration_ns);
		parquet_put(export->rows, ROW_STACK, (int64_t)stack_id(at, node));
		parquet_put(export->rows, ROW_VALUE,
			    block->values ? block->values[report->value_first + i * stride +
							  column * block->column_stride]
					  : 1);
		if (block->label_sets)
			put_sample_labels(export, view, block->label_sets[row]);
		put_labels(export, view, series->label_set);
		at->used[node] = 1;
		export->result.rows++;
		rc = parquet_end_row(export->rows, err);
	}
	strbuf_free(&type_text);
	return rc;
}

static int put_report(struct export *export, const struct at_segment *at,
		      const struct segment_block *block, const struct segment_report *report,
		      struct err *err)
{
	const struct tables_view *view = &at->segment->view;
	uint32_t group = view->series[report->series].group;
	int rc = 0;

	for (uint32_t i = 0; i < view->groups[group].column_count && !rc; i++) {
		struct profile_type type = profile_type_of(view, group, i);

		if (is_wanted_type(export, &type))
			rc = put_rows(export, at, block, report, i, err);
	}
	export->result.reports++;
	return rc;
}

static bool is_in(const struct export *export, const struct at_segment *at,
		  const struct segment_report *report)
{
	const struct export_options *options = export->options;

	return at->wanted[report->series] && report->start_ns >= options->from_ns &&
	       report->start_ns < options->to_ns &&
	       segment_answers_for(at->segment, report->start_ns);
}

static int put_blocks(struct export *export, const struct at_segment *at, struct err *err)
{
	struct segment_buffer buffer = { 0 };
	int rc = 0;

	for (uint32_t i = 0; i < at->segment->blocks_count && !rc; i++) {
		struct segment_block block;

		if (segment_read(at->segment, i, SEGMENT_ROWS, &buffer, &block, NULL)) {
			export->result.parts_unreadable++;
			break;
		}
		for (uint32_t j = 0; j < block.reports_count && !rc; j++)
			if (is_in(export, at, &block.reports[j]))
				rc = put_report(export, at, &block, &block.reports[j], err);
	}
	segment_buffer_free(&buffer);
	return rc;
}

static void put_frame(struct parquet *stacks, const struct tables_view *view,
		      const struct frame *frame)
{
	parquet_put_text(stacks, STACK_KINDS,
			 slice_of(frame_kind_name((enum frame_kind)frame->kind)));
	parquet_put_text(stacks, STACK_FUNCTIONS, tables_text(view, frame->function));
	parquet_put_text(stacks, STACK_FILES, tables_text(view, frame->file));
	parquet_put(stacks, STACK_LINES, frame->line);
	parquet_put_text(stacks, STACK_MAPPINGS, tables_text(view, frame->mapping_file));
	parquet_put_text(stacks, STACK_BUILD_IDS, tables_text(view, frame->build_id));
	parquet_put(stacks, STACK_ADDRESSES, (int64_t)frame->address);
}

static int put_stacks(struct export *export, const struct at_segment *at, struct err *err)
{
	const struct tables_view *view = &at->segment->view;
	int rc = 0;

	for (uint32_t i = 0; i < view->nodes_count && !rc; i++) {
		if (!at->used[i])
			continue;
		parquet_put(export->stacks, STACK_ID, (int64_t)stack_id(at, i));
		for (uint32_t node = i; node; node = view->nodes[node].parent)
			put_frame(export->stacks, view, &view->frames[view->nodes[node].frame]);
		export->result.stacks++;
		rc = parquet_end_row(export->stacks, err);
	}
	return rc;
}

static int put_segment(struct export *export, struct segment *segment, uint32_t number,
		       struct err *err)
{
	struct at_segment at = { .segment = segment, .number = number };
	const struct tables_view *view = &segment->view;
	const struct selector *selector = export->options->selector;
	bool any = false;
	int rc = 0;

	at.wanted = mem_new_array(uint8_t, view->series_count + (size_t)1);
	for (uint32_t i = 0; i < view->series_count; i++) {
		at.wanted[i] =
			!selector || selector_matches(selector, view, view->series[i].label_set);
		any |= at.wanted[i];
	}
	if (any && segment_load_stacks(segment, NULL)) {
		export->result.parts_unreadable++;
	} else if (any) {
		at.used = mem_new_array(uint8_t, view->nodes_count);
		rc = put_blocks(export, &at, err);
		if (!rc)
			rc = put_stacks(export, &at, err);
	}
	free(at.wanted);
	free(at.used);
	return rc;
}

int export_parquet(struct store *store, const struct export_options *options,
		   const struct export_sink *rows, const struct export_sink *stacks,
		   struct export_result *ret, struct err *err)
{
	const struct store_query query = { .from_ns = options->from_ns,
					   .to_ns = options->to_ns,
					   .selector = options->selector,
					   .by_series = true };
	struct export export = { .options = options };
	struct strbuf column_names = { 0 };
	struct store_snapshot snapshot;
	int rc = store_snapshot(store, &query, &snapshot, err);

	if (rc)
		return rc;
	tables_init(&export.names);
	export.result.parts_unreadable = snapshot.parts_unreadable;
	rc = collect_names(&export, &snapshot, err);
	if (!rc)
		begin_files(&export, rows, stacks, &column_names);
	for (size_t i = 0; i < snapshot.count && !rc; i++)
		rc = put_segment(&export, &snapshot.segments[i], (uint32_t)i, err);
	if (!rc)
		rc = parquet_finish(export.rows, err);
	if (!rc)
		rc = parquet_finish(export.stacks, err);
	if (!rc)
		*ret = export.result;
	parquet_free(export.rows);
	parquet_free(export.stacks);
	tables_free(&export.names);
	strbuf_free(&column_names);
	strbuf_free(&export.text);
	store_snapshot_release(store, &snapshot);
	return rc;
}
