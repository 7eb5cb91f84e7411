/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prometheus_text - reads metrics in the Prometheus text format (version 0.0.4):
 *
 *     # HELP firn_agent_stacks_total User stacks by the reason why they ended.
 *     firn_agent_stacks_total{end="complete"} 1027
 *
 * Format: prometheus.io/docs/instrumenting/exposition_formats. Comments, blank lines and lines that
 * are not well-formed are passed over; timestamps are ignored. Slices point into the input.
 */
#ifndef FIRN_CODEC_WIRE_PROMETHEUS_TEXT_H
#define FIRN_CODEC_WIRE_PROMETHEUS_TEXT_H

#include "base/strbuf.h"

struct prometheus_sample {
	struct slice name;
	struct slice labels; /* what is between the braces, well-formed */
	double value;	     /* may be infinite or NaN */
};

/* The next sample of *text, which moves on behind it; false when there is none. */
bool prometheus_next(struct slice *text, struct prometheus_sample *ret);

/* Replaces `ret` with the value of a label, unescaped; false when the sample has no such label. */
bool prometheus_label(const struct prometheus_sample *sample, const char *name, struct strbuf *ret);

#endif
