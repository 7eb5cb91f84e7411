/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels_preview - explains the labels of the running processes: for each its labels and meta
 * labels, what each rule changed, and the labels of its series.
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
