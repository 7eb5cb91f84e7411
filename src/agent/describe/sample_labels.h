/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_labels - labels of single samples: which thread, process and CPU each was taken on.
 *
 * They tell the samples of one series apart and make no series: a query filters and groups by them,
 * and the timeline has a lane for each value. They cost rows instead: samples of one stack that
 * differ in them are not summed (docs/labels.md).
 */
#ifndef FIRN_AGENT_DESCRIBE_SAMPLE_LABELS_H
#define FIRN_AGENT_DESCRIBE_SAMPLE_LABELS_H

#include "agent/collect/counts.h"
#include "base/err.h"
#include "model/tables.h"

enum sample_label {
	SAMPLE_LABEL_THREAD_NAME = 1, /* where it is not the process's name */
	SAMPLE_LABEL_THREAD_ID = 2,
	SAMPLE_LABEL_PID = 4,
	SAMPLE_LABEL_CPU = 8,
};

/* "thread_name,cpu" or "none" -> a set of enum sample_label. ERR_INVALID names the unknown one. */
int sample_labels_parse(struct slice text, unsigned *ret, struct err *err);

/* The fields that counts must keep for these labels: a set of enum counts_keep. */
unsigned sample_labels_keep(unsigned labels);

struct process;

/* The id of the label set of these samples; 0 = they have none. */
uint32_t sample_labels_of(struct tables *tables, unsigned labels, const struct counts *counts,
			  const struct counted *stack, const struct process *process);

#endif
