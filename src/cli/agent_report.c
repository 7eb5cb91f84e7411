/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collect/accounts.h"
#include "base/mem.h"
#include "base/printable.h"
#include "codec/wire/prometheus_text.h"

#define BUCKET "firn_agent_bpf_sample_seconds_bucket"
#define SECONDS_SUM "firn_agent_bpf_sample_seconds_sum"
#define SECONDS_COUNT "firn_agent_bpf_sample_seconds_count"

static const struct {
	const char *metric, *key;
} figures[AGENT_FIGURES] = {
	[AGENT_SAMPLES] = { "firn_agent_samples_total", "samples" },
	[AGENT_RING_BYTES] = { "firn_agent_ring_bytes_total", "ring_bytes" },
	[AGENT_MAPPINGS_LOST] = { "firn_agent_mapping_records_lost_total", "mapping_records_lost" },
	[AGENT_TABLES] = { "firn_agent_unwind_tables", "tables" },
	[AGENT_TABLE_ROWS] = { "firn_agent_unwind_rows", "rows" },
	[AGENT_TABLE_BYTES] = { "firn_agent_unwind_bytes", "bytes" },
	[AGENT_TABLES_WAITING] = { "firn_agent_unwind_waiting", "waiting" },
	[AGENT_TABLES_FAILED] = { "firn_agent_unwind_failures_total", "failed" },
	[AGENT_TABLE_BUILDS] = { "firn_agent_unwind_builds_total", "builds" },
	[AGENT_TABLE_BUILD_SECONDS] = { "firn_agent_unwind_build_seconds_total", "build_seconds" },
	[AGENT_TABLE_CACHE_HITS] = { "firn_agent_unwind_cache_hits_total", "cache_hits" },
};

/* For people, by enum stack_end. */
static const char *const end_texts[STACK_ENDS] = {
	[STACK_COMPLETE] = "whole",
	[STACK_NO_UNWIND_INFO] = "code without unwind information, and no frame pointer",
	[STACK_TABLE_PENDING] = "the binary's unwind table was not loaded yet",
	[STACK_UNSUPPORTED_RULE] = "unwind information that the tables cannot express",
	[STACK_NO_FRAME_POINTER] = "generated code without frame pointers",
	[STACK_BAD_ADDRESS] = "a return address that is not code",
	[STACK_UNREADABLE] = "stack memory that was swapped out, or never touched",
	[STACK_TOO_DEEP] = "deeper than the limit of frames",
	[STACK_32_BIT] = "a 32-bit program",
	[STACK_NO_USER_REGISTERS] = "in the kernel, user registers out of reach",
	[STACK_NO_MAPPINGS] = "the process was changing its mappings",
	[STACK_KERNEL_WALK] = "walked by the kernel, which does not tell",
	[STACK_TABLE_FAILED] = "the binary's unwind table cannot be built: see below",
	[STACK_TABLE_NO_ROOM] = "no room for the binary's unwind table (--unwind-memory)",
	[STACK_GUESSED_POINTER] =
		"whole if generated code keeps frame pointers, which is not known",
};

static uint64_t to_count(double value)
{
	return value > 0 && value < 0x1p63 ? (uint64_t)value : 0;
}

static int find_end(const struct prometheus_sample *sample, struct strbuf *label)
{
	if (!prometheus_label(sample, "end", label))
		return STACK_ENDS;
	for (int end = 0; end < STACK_ENDS; end++)
		if (!strcmp(strbuf_text(label), accounts_end_name(end)))
			return end;
	return STACK_ENDS;
}

static struct agent_report_binary *find_binary(struct agent_report *report, const char *name)
{
	for (size_t i = report->binaries_count; i-- > 0;)
		if (!strncmp(report->binaries[i].name, name, AGENT_REPORT_NAME_BYTES - 1))
			return &report->binaries[i];
	if (report->binaries_count == AGENT_REPORT_BINARIES_MAX)
		return NULL;
	mem_grow(report->binaries, report->binaries_count, report->binaries_capacity);
	report->binaries[report->binaries_count] = (struct agent_report_binary){ 0 };
	snprintf(report->binaries[report->binaries_count].name, AGENT_REPORT_NAME_BYTES, "%s",
		 name);
	return &report->binaries[report->binaries_count++];
}

static void read_binary(struct agent_report *report, const struct prometheus_sample *sample,
			struct strbuf *label)
{
	struct agent_report_binary *binary;
	int end = find_end(sample, label);

	if (end == STACK_ENDS || !prometheus_label(sample, "binary", label))
		return;
	binary = find_binary(report, strbuf_text(label));
	if (binary)
		binary->ends[end] += to_count(sample->value);
}

static void read_loss(struct agent_report *report, const struct prometheus_sample *sample,
		      struct strbuf *label)
{
	struct agent_report_loss *loss = &report->losses[report->losses_count];

	if (report->losses_count == AGENT_REPORT_LOSSES_MAX ||
	    !prometheus_label(sample, "reason", label))
		return;
	snprintf(loss->reason, sizeof(loss->reason), "%s", strbuf_text(label));
	loss->samples = to_count(sample->value);
	report->losses_count++;
}

static void read_bucket(struct agent_report *report, const struct prometheus_sample *sample,
			struct strbuf *label)
{
	if (report->buckets_count == AGENT_REPORT_BUCKETS_MAX ||
	    !prometheus_label(sample, "le", label))
		return;
	report->buckets[report->buckets_count++] =
		(struct agent_report_bucket){ .bound = strtod(strbuf_text(label), NULL),
					      .below = to_count(sample->value) };
}

static void read_missing(struct agent_report *report, const struct prometheus_sample *sample,
			 struct strbuf *label)
{
	struct agent_report_missing *missing = &report->missing[report->missing_count];

	if (report->missing_count == AGENT_REPORT_MISSING_MAX ||
	    !prometheus_label(sample, "path", label))
		return;
	snprintf(missing->path, sizeof(missing->path), "%s", strbuf_text(label));
	if (!prometheus_label(sample, "reason", label))
		return;
	snprintf(missing->reason, sizeof(missing->reason), "%s", strbuf_text(label));
	report->missing_count++;
}

static void read_figure(struct agent_report *report, const struct prometheus_sample *sample)
{
	for (int i = 0; i < AGENT_FIGURES; i++) {
		if (slice_is(sample->name, figures[i].metric) && isfinite(sample->value)) {
			report->figures[i] = sample->value;
			report->told[i] = true;
		}
	}
}

void agent_report_read(struct agent_report *ret, struct slice metrics)
{
	struct prometheus_sample sample;
	struct strbuf label = { 0 };

	*ret = (struct agent_report){ 0 };
	while (prometheus_next(&metrics, &sample)) {
		if (slice_is(sample.name, "firn_agent_stacks_total")) {
			int end = find_end(&sample, &label);

			if (end < STACK_ENDS)
				ret->ends[end] = to_count(sample.value);
		} else if (slice_is(sample.name, "firn_agent_binary_stacks_total")) {
			read_binary(ret, &sample, &label);
		} else if (slice_is(sample.name, "firn_agent_lost_samples_total")) {
			read_loss(ret, &sample, &label);
		} else if (slice_is(sample.name, "firn_agent_unwind_missing")) {
			read_missing(ret, &sample, &label);
		} else if (slice_is(sample.name, BUCKET)) {
			read_bucket(ret, &sample, &label);
		} else if (slice_is(sample.name, SECONDS_SUM)) {
			ret->bpf_seconds = isfinite(sample.value) ? sample.value : 0;
		} else if (slice_is(sample.name, SECONDS_COUNT)) {
			ret->bpf_samples = to_count(sample.value);
		} else {
			read_figure(ret, &sample);
			runtime_report_add(&ret->runtimes, &sample, &label);
		}
	}
	strbuf_free(&label);
}

void agent_report_free(struct agent_report *report)
{
	free(report->binaries);
	*report = (struct agent_report){ 0 };
}

double agent_report_quantile(const struct agent_report *report, double part)
{
	double rank = part * (double)report->bpf_samples;
	struct agent_report_bucket before = { 0 };

	if (!report->bpf_samples)
		return 0;
	for (size_t i = 0; i < report->buckets_count; i++) {
		struct agent_report_bucket at = report->buckets[i];

		if (!isfinite(at.bound))
			break;
		if ((double)at.below >= rank && at.below > before.below)
			return before.bound + (at.bound - before.bound) *
						      (rank - (double)before.below) /
						      (double)(at.below - before.below);
		before = at;
	}
	return before.bound;
}

static double mean_seconds(const struct agent_report *report)
{
	return report->bpf_samples ? report->bpf_seconds / (double)report->bpf_samples : 0;
}

static uint64_t cut_of(const uint64_t *ends)
{
	uint64_t cut = 0;

	for (int end = 0; end < STACK_ENDS; end++)
		if (end != STACK_COMPLETE)
			cut += ends[end];
	return cut;
}

static uint64_t lost_samples(const struct agent_report *report)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < report->losses_count; i++)
		lost += report->losses[i].samples;
	return lost;
}

static double percent(uint64_t part, uint64_t total)
{
	return total ? 100.0 * (double)part / (double)total : 0;
}

static void stacks_text(const struct agent_report *report, struct strbuf *out)
{
	uint64_t cut = cut_of(report->ends), total = cut + report->ends[STACK_COMPLETE];

	strbuf_addf(out, "stacks     %llu: %llu whole (%.2f %%), %llu cut\n",
		    (unsigned long long)total, (unsigned long long)report->ends[STACK_COMPLETE],
		    percent(report->ends[STACK_COMPLETE], total), (unsigned long long)cut);
	for (int end = 0; end < STACK_ENDS; end++)
		if (end != STACK_COMPLETE && report->ends[end])
			strbuf_addf(out, "  %-18s %8llu  %s\n", accounts_end_name(end),
				    (unsigned long long)report->ends[end], end_texts[end]);
}

static void binary_text(const struct agent_report_binary *binary, struct strbuf *out)
{
	uint64_t cut = cut_of(binary->ends);
	const char *separator = ": ";

	strbuf_add_text(out, "  ");
	printable_add(out, slice_of(binary->name));
	strbuf_addf(out, "  %llu of %llu", (unsigned long long)cut,
		    (unsigned long long)(cut + binary->ends[STACK_COMPLETE]));
	for (int end = 0; end < STACK_ENDS; end++) {
		if (end == STACK_COMPLETE || !binary->ends[end])
			continue;
		strbuf_addf(out, "%s%s %llu", separator, accounts_end_name(end),
			    (unsigned long long)binary->ends[end]);
		separator = ", ";
	}
	strbuf_add_byte(out, '\n');
}

static void tables_text(const struct agent_report *report, struct strbuf *out)
{
	const double *of = report->figures;

	if (!report->told[AGENT_TABLES])
		return;
	strbuf_addf(out, "tables     %.0f loaded: %.0f rows, %.1f MiB; %.0f waiting, %.0f failed\n",
		    of[AGENT_TABLES], of[AGENT_TABLE_ROWS],
		    of[AGENT_TABLE_BYTES] / (double)(1 << 20), of[AGENT_TABLES_WAITING],
		    of[AGENT_TABLES_FAILED]);
	strbuf_addf(out, "           %.0f built in %.2f s of CPU time, %.0f taken from the cache\n",
		    of[AGENT_TABLE_BUILDS], of[AGENT_TABLE_BUILD_SECONDS],
		    of[AGENT_TABLE_CACHE_HITS]);
}

static void missing_text(const struct agent_report *report, struct strbuf *out)
{
	if (report->missing_count)
		strbuf_add_text(out, "no table\n");
	for (size_t i = 0; i < report->missing_count; i++) {
		strbuf_add_text(out, "  ");
		printable_add(out, slice_of(report->missing[i].path));
		strbuf_add_text(out, ": ");
		printable_add(out, slice_of(report->missing[i].reason));
		strbuf_add_byte(out, '\n');
	}
}

static void losses_text(const struct agent_report *report, struct strbuf *out)
{
	uint64_t lost = lost_samples(report);

	strbuf_addf(out, "samples    %.0f taken, %llu lost", report->figures[AGENT_SAMPLES],
		    (unsigned long long)lost);
	for (size_t i = 0; i < report->losses_count; i++)
		if (report->losses[i].samples)
			strbuf_addf(out, ", %.40s %llu", report->losses[i].reason,
				    (unsigned long long)report->losses[i].samples);
	strbuf_addf(out,
		    "\nnew ones   %llu stacks cut before their table was there, %llu before their "
		    "mappings were; %.0f lists of mappings lost\n",
		    (unsigned long long)report->ends[STACK_TABLE_PENDING],
		    (unsigned long long)report->ends[STACK_NO_MAPPINGS],
		    report->figures[AGENT_MAPPINGS_LOST]);
}

void agent_report_text(const struct agent_report *report, size_t top, struct strbuf *out)
{
	size_t shown = 0;

	stacks_text(report, out);
	for (size_t i = 0; i < report->binaries_count && shown < top; i++) {
		if (!cut_of(report->binaries[i].ends))
			continue;
		if (!shown++)
			strbuf_add_text(out, "cut in\n");
		binary_text(&report->binaries[i], out);
	}
	losses_text(report, out);
	tables_text(report, out);
	missing_text(report, out);
	runtime_report_text(&report->runtimes, out);
	if (report->bpf_samples)
		strbuf_addf(out,
			    "BPF time   %.1f us per sample; half under %.1f, 90 %% under %.1f, "
			    "99 %% under %.1f us\n",
			    mean_seconds(report) * 1e6, agent_report_quantile(report, 0.5) * 1e6,
			    agent_report_quantile(report, 0.9) * 1e6,
			    agent_report_quantile(report, 0.99) * 1e6);
}

static void ends_json(const uint64_t *ends, struct json *json)
{
	json_put_key(json, "whole");
	json_put_uint(json, ends[STACK_COMPLETE]);
	json_put_key(json, "cut");
	json_put_uint(json, cut_of(ends));
	json_put_key(json, "cut_by_reason");
	json_open_object(json);
	for (int end = 0; end < STACK_ENDS; end++) {
		if (end == STACK_COMPLETE || !ends[end])
			continue;
		json_put_key(json, accounts_end_name(end));
		json_put_uint(json, ends[end]);
	}
	json_close_object(json);
}

static void binaries_json(const struct agent_report *report, size_t top, struct json *json)
{
	json_put_key(json, "binaries");
	json_open_array(json);
	for (size_t i = 0; i < report->binaries_count && i < top; i++) {
		json_open_object(json);
		json_put_key(json, "binary");
		json_put_text(json, report->binaries[i].name);
		ends_json(report->binaries[i].ends, json);
		json_close_object(json);
	}
	json_close_array(json);
}

static void figures_json(const struct agent_report *report, int first, int last, struct json *json)
{
	for (int i = first; i <= last; i++) {
		if (!report->told[i])
			continue;
		json_put_key(json, figures[i].key);
		json_put_double(json, report->figures[i]);
	}
}

void agent_report_json(const struct agent_report *report, size_t top, struct json *json)
{
	static const struct {
		const char *key;
		double part;
	} quantiles[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 } };

	json_put_key(json, "stacks");
	json_open_object(json);
	ends_json(report->ends, json);
	json_close_object(json);
	binaries_json(report, top, json);
	figures_json(report, AGENT_SAMPLES, AGENT_MAPPINGS_LOST, json);
	json_put_key(json, "lost_samples");
	json_open_object(json);
	for (size_t i = 0; i < report->losses_count; i++) {
		json_put_key(json, report->losses[i].reason);
		json_put_uint(json, report->losses[i].samples);
	}
	json_close_object(json);
	json_put_key(json, "unwind_tables");
	json_open_object(json);
	figures_json(report, AGENT_TABLES, AGENT_FIGURES - 1, json);
	json_put_key(json, "missing");
	json_open_array(json);
	for (size_t i = 0; i < report->missing_count; i++) {
		json_open_object(json);
		json_put_key(json, "path");
		json_put_text(json, report->missing[i].path);
		json_put_key(json, "reason");
		json_put_text(json, report->missing[i].reason);
		json_close_object(json);
	}
	json_close_array(json);
	json_close_object(json);
	runtime_report_json(&report->runtimes, json);
	json_put_key(json, "bpf_seconds_per_sample");
	json_open_object(json);
	json_put_key(json, "samples");
	json_put_uint(json, report->bpf_samples);
	json_put_key(json, "mean");
	json_put_double(json, mean_seconds(report));
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		json_put_key(json, quantiles[i].key);
		json_put_double(json, agent_report_quantile(report, quantiles[i].part));
	}
	json_close_object(json);
}
