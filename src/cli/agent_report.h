/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_report - the health of a running agent, from its /metrics: whole and truncated stacks, in
 * total and by binary; lost samples; unwind tables; languages; time per sample.
 *
 * Metrics that an older agent lacks are left out. Bounds: AGENT_REPORT_BINARIES_MAX; further
 * binaries are skipped.
 */
#ifndef FIRN_CLI_AGENT_REPORT_H
#define FIRN_CLI_AGENT_REPORT_H

#include "agent/bpf/shared.h"
#include "base/strbuf.h"
#include "cli/runtime_report.h"
#include "codec/wire/json.h"

#define AGENT_REPORT_BINARIES_MAX 1024
#define AGENT_REPORT_NAME_BYTES 80
#define AGENT_REPORT_LOSSES_MAX 16
#define AGENT_REPORT_BUCKETS_MAX 64
#define AGENT_REPORT_MISSING_MAX 32

/* Metrics that are one number. */
enum agent_figure {
	AGENT_SAMPLES,
	AGENT_RING_BYTES,
	AGENT_MAPPINGS_LOST,
	AGENT_TABLES,
	AGENT_TABLE_ROWS,
	AGENT_TABLE_BYTES,
	AGENT_TABLES_WAITING,
	AGENT_TABLES_FAILED,
	AGENT_TABLE_BUILDS,
	AGENT_TABLE_BUILD_SECONDS,
	AGENT_TABLE_CACHE_HITS,
	AGENT_FIGURES
};

struct agent_report_binary {
	char name[AGENT_REPORT_NAME_BYTES];
	uint64_t ends[STACK_ENDS];
};

struct agent_report_loss {
	char reason[AGENT_REPORT_NAME_BYTES];
	uint64_t samples;
};

struct agent_report_bucket {
	double bound;	/* seconds */
	uint64_t below; /* samples up to it, in all */
};

/* A file without an unwind table. */
struct agent_report_missing {
	char path[256], reason[256];
};

struct agent_report {
	uint64_t ends[STACK_ENDS];
	double figures[AGENT_FIGURES];
	bool told[AGENT_FIGURES];
	struct agent_report_binary *binaries; /* in the agent's order: most cut stacks first */
	size_t binaries_count, binaries_capacity;
	struct agent_report_loss losses[AGENT_REPORT_LOSSES_MAX];
	size_t losses_count;
	struct agent_report_bucket buckets[AGENT_REPORT_BUCKETS_MAX];
	size_t buckets_count;
	struct agent_report_missing missing[AGENT_REPORT_MISSING_MAX];
	size_t missing_count;
	struct runtime_report runtimes;
	double bpf_seconds;
	uint64_t bpf_samples;
};

void agent_report_read(struct agent_report *ret, struct slice metrics);
void agent_report_free(struct agent_report *report);

/* The quantile `part` of the time per sample, interpolated; 0 without samples. */
double agent_report_quantile(const struct agent_report *report, double part);

/* `top` binaries at most. */
void agent_report_text(const struct agent_report *report, size_t top, struct strbuf *out);
void agent_report_json(const struct agent_report *report, size_t top, struct json *json);

#endif
