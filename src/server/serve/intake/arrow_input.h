/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow_input - samples in Arrow, as Parca's agents send them. Columns are known by their names,
 * of whatever type they are, so that all versions of the schema are read:
 *
 *   version 1  rows with stacktrace_id; the locations of these come in a stream of their own
 *   version 2  rows with their stacktrace in them
 *   both       value, timestamp, producer, sample_type, sample_unit, period_type, period_unit,
 *              temporality, period, duration, and labels: "labels.NAME" or fields of "labels"
 *
 * Each row is one sample. Rows of the same labels and types become one profile, named by producer,
 * over the time between the batch's first and last row. Threads, CPUs and traces are labels of
 * samples, not of series.
 */
#ifndef FIRN_SERVER_SERVE_INTAKE_ARROW_INPUT_H
#define FIRN_SERVER_SERVE_INTAKE_ARROW_INPUT_H

#include "server/serve/intake/writing.h"

/*
 * Into the writing's batch. Empty `locations`: these may stand behind the stream of samples. Stacks
 * that did not come are marked as unknown, and counted.
 */
MUST_USE int arrow_input_take(struct writing *writing, struct slice samples,
			      struct slice locations);

/*
 * Of samples in version 1: a stream with the ids of their stacks, each once, as the sender expects
 * to be asked for them. Nothing when they name none. `budget` pays while it is made.
 */
MUST_USE int arrow_input_ask(struct slice samples, struct budget *budget, struct strbuf *out,
			     struct err *err);

void arrow_input_register_metrics(void);

#endif
