/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_report - the language runtimes that a running agent has seen, and how many of their
 * frames have names, from its /metrics. Part of agent_report.
 *
 * Bounds: RUNTIME_REPORT_MAX runtimes and RUNTIME_REPORT_VERSIONS_MAX versions of each; what comes
 * after that is passed over.
 */
#ifndef FIRN_CLI_RUNTIME_REPORT_H
#define FIRN_CLI_RUNTIME_REPORT_H

#include "base/strbuf.h"
#include "codec/wire/json.h"
#include "codec/wire/prometheus_text.h"

#define RUNTIME_REPORT_MAX 16
#define RUNTIME_REPORT_VERSIONS_MAX 16
#define RUNTIME_REPORT_NAME_BYTES 40

struct runtime_report_version {
	char version[RUNTIME_REPORT_NAME_BYTES];
	char source[RUNTIME_REPORT_NAME_BYTES]; /* of its layout, or why that is not known */
};

struct runtime_report_row {
	char name[RUNTIME_REPORT_NAME_BYTES];
	struct runtime_report_version versions[RUNTIME_REPORT_VERSIONS_MAX];
	size_t versions_count;
	uint64_t frames, named; /* those of code, each stack of a window once */
	uint64_t cut, unknown;	/* markers: stacks whose frames are not all there */
};

struct runtime_report {
	struct runtime_report_row rows[RUNTIME_REPORT_MAX];
	size_t count;
};

/* Takes a line of the metrics; `label` is scratch. */
void runtime_report_add(struct runtime_report *report, const struct prometheus_sample *sample,
			struct strbuf *label);

/* Nothing where no runtime was seen. */
void runtime_report_text(const struct runtime_report *report, struct strbuf *out);
void runtime_report_json(const struct runtime_report *report, struct json *json);

#endif
