/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels_preview - what the processes that run now are called, and why: for each the labels and
 * meta labels that are known of it, what each rule did to them, and the labels of its series.
 *
 * Reads /proc and asks the containers' sockets (for at most two seconds); samples nothing. For one
 * thread. At most LABELS_PREVIEW_PROCESSES_MAX processes, by pid; kernel threads are left out.
 */
#ifndef FIRN_AGENT_DESCRIBE_LABELS_PREVIEW_H
#define FIRN_AGENT_DESCRIBE_LABELS_PREVIEW_H

#include "agent/describe/labels.h"

#define LABELS_PREVIEW_PROCESSES_MAX 100000u

/* Appends the text to `out`, fit for a terminal. Errors: /proc cannot be read. */
int labels_preview(const struct label_sources *sources, struct strbuf *out, struct err *err);

#endif
