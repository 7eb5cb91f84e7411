/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/peer_csv.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

static FILE *open_in(const char *dir, const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		exit(2);
	}
	return file;
}

static void end(FILE *file)
{
	if (fclose(file)) {
		perror("write CSV");
		exit(2);
	}
}

/* Services by number, by series. */
static uint32_t *services_of(const struct tables_view *view)
{
	uint32_t *services = mem_new_array(uint32_t, view->series_count + (size_t)1);
	struct tables names;

	tables_init(&names);
	for (uint32_t i = 0; i < view->series_count; i++)
		services[i] = tables_string(&names, workload_service(view, i));
	tables_free(&names);
	return services;
}

static void write_rows(const struct tables_view *view, const uint32_t *services, FILE *file)
{
	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];
		uint32_t columns = tables_series_columns(view, report->series);

		for (uint32_t j = 0; j < report->row_count; j++)
			fprintf(file, "%u,%lld,%u,%u,%u,%lld\n", i,
				(long long)(report->start_ns / CLOCK_NS_PER_MS), report->series,
				services[report->series], view->rows[report->row_first + j].stack,
				(long long)view->values[report->value_first + j * columns]);
	}
}

static void write_series(const struct tables_view *view, const uint32_t *services, FILE *file)
{
	for (uint32_t i = 0; i < view->series_count; i++) {
		const struct label_set *set = &view->label_sets[view->series[i].label_set];

		for (uint32_t j = 0; j < set->label_count; j++) {
			const struct label *label = &view->labels[set->label_first + j];

			fprintf(file, "%u,%u,\"%.*s\",\"%.*s\"\n", i, services[i],
				SLICE_FMT(tables_text(view, label->name)),
				SLICE_FMT(tables_text(view, label->value)));
		}
	}
}

/* Quotes inside are doubled, as CSV wants it. */
static void put_text(struct slice text, FILE *file)
{
	fputc('"', file);
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '"')
			fputc('"', file);
		fputc(text.data[i], file);
	}
	fputc('"', file);
}

void peer_csv_write(const struct workload *workload, const char *dir)
{
	const struct tables_view view = tables_view_of(&workload->tables);
	uint32_t *services = services_of(&view);
	FILE *file = open_in(dir, "rows.csv");

	write_rows(&view, services, file);
	end(file);
	file = open_in(dir, "series.csv");
	write_series(&view, services, file);
	end(file);
	file = open_in(dir, "nodes.csv");
	for (uint32_t i = 1; i < view.nodes_count; i++)
		fprintf(file, "%u,%u,%u\n", i, view.nodes[i].parent, view.nodes[i].frame);
	end(file);
	file = open_in(dir, "frames.csv");
	for (uint32_t i = 0; i < view.frames_count; i++) {
		const struct frame *frame = &view.frames[i];

		fprintf(file, "%u,%llu,", i, (unsigned long long)frame->address);
		put_text(tables_text(&view, frame->mapping_file), file);
		fputc(',', file);
		put_text(tables_text(&view, frame->function), file);
		fputc('\n', file);
	}
	end(file);
	free(services);
}
