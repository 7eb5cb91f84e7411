/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runtime_report.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

#define OFFSETS "firn_agent_runtime_offsets"
#define FRAMES "firn_agent_runtime_frames_total"

static struct runtime_report_row *find_row(struct runtime_report *report, const char *name)
{
	struct runtime_report_row *row;

	for (size_t i = 0; i < report->count; i++)
		if (!strncmp(report->rows[i].name, name, RUNTIME_REPORT_NAME_BYTES - 1))
			return &report->rows[i];
	if (report->count == RUNTIME_REPORT_MAX)
		return NULL;
	row = &report->rows[report->count++];
	snprintf(row->name, sizeof(row->name), "%s", name);
	return row;
}

static void add_version(struct runtime_report_row *row, const struct prometheus_sample *sample,
			struct strbuf *label)
{
	struct runtime_report_version *version = &row->versions[row->versions_count];

	if (row->versions_count == RUNTIME_REPORT_VERSIONS_MAX ||
	    !prometheus_label(sample, "version", label))
		return;
	snprintf(version->version, sizeof(version->version), "%s", strbuf_text(label));
	if (!prometheus_label(sample, "source", label))
		return;
	snprintf(version->source, sizeof(version->source), "%s", strbuf_text(label));
	row->versions_count++;
}

static void add_frames(struct runtime_report_row *row, const struct prometheus_sample *sample,
		       struct strbuf *label)
{
	double value = sample->value;
	uint64_t count = value > 0 && value < 0x1p53 ? (uint64_t)value : 0;

	if (!prometheus_label(sample, "result", label))
		return;
	if (!strcmp(strbuf_text(label), "cut"))
		row->cut += count;
	else if (!strcmp(strbuf_text(label), "unknown"))
		row->unknown += count;
	else
		row->frames += count;
	if (!strcmp(strbuf_text(label), "named"))
		row->named += count;
}

void runtime_report_add(struct runtime_report *report, const struct prometheus_sample *sample,
			struct strbuf *label)
{
	bool is_version = slice_is(sample->name, OFFSETS);
	struct runtime_report_row *row;

	if ((!is_version && !slice_is(sample->name, FRAMES)) || !(sample->value > 0) ||
	    !prometheus_label(sample, "runtime", label))
		return;
	row = find_row(report, strbuf_text(label));
	if (row && is_version)
		add_version(row, sample, label);
	else if (row)
		add_frames(row, sample, label);
}

/* Words for where a layout comes from; others are reasons why there is none. */
static bool is_layout(const char *source)
{
	static const char *const layouts[] = { "debug_offsets", "v8dbg",      "contract", "table",
					       "code",		"vm_structs", "none" };

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (!strcmp(source, layouts[i]))
			return true;
	return false;
}

static void row_text(const struct runtime_report_row *row, struct strbuf *out)
{
	const char *separator = " ";

	strbuf_add_text(out, "  ");
	printable_add(out, slice_of(row->name));
	for (size_t i = 0; i < row->versions_count; i++) {
		strbuf_add_text(out, separator);
		printable_add(out, slice_of(row->versions[i].version));
		if (!is_layout(row->versions[i].source)) {
			strbuf_add_text(out, " (");
			printable_add(out, slice_of(row->versions[i].source));
			strbuf_add_byte(out, ')');
		}
		separator = ", ";
	}
	if (row->frames)
		strbuf_addf(out, ": %.2f %% of %llu frames have names",
			    100.0 * (double)row->named / (double)row->frames,
			    (unsigned long long)row->frames);
	if (row->cut)
		strbuf_addf(out, "; of %llu stacks some could not be read",
			    (unsigned long long)row->cut);
	if (row->unknown)
		strbuf_addf(out, "; %llu stacks of a layout that is not known",
			    (unsigned long long)row->unknown);
	strbuf_add_byte(out, '\n');
}

void runtime_report_text(const struct runtime_report *report, struct strbuf *out)
{
	if (report->count)
		strbuf_add_text(out, "languages  (docs/languages.md says what works of each)\n");
	for (size_t i = 0; i < report->count; i++)
		row_text(&report->rows[i], out);
}

static void row_json(const struct runtime_report_row *row, struct json *json)
{
	json_open_object(json);
	json_member_text(json, "runtime", row->name);
	json_member_array(json, "versions");
	for (size_t i = 0; i < row->versions_count; i++) {
		json_open_object(json);
		json_member_text(json, "version", row->versions[i].version);
		json_member_text(json, "layout", row->versions[i].source);
		json_close_object(json);
	}
	json_close_array(json);
	json_member_uint(json, "frames", row->frames);
	json_member_uint(json, "frames_named", row->named);
	json_member_uint(json, "stacks_cut", row->cut);
	json_member_uint(json, "stacks_unknown", row->unknown);
	json_close_object(json);
}

void runtime_report_json(const struct runtime_report *report, struct json *json)
{
	json_member_array(json, "runtimes");
	for (size_t i = 0; i < report->count; i++)
		row_json(&report->rows[i], json);
	json_close_array(json);
}
