/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr_input - a Java flight recording in a request: each of its kinds becomes a profile.
 */
#ifndef FIRN_SERVER_SERVE_INTAKE_JFR_INPUT_H
#define FIRN_SERVER_SERVE_INTAKE_JFR_INPUT_H

#include "server/serve/intake/writing.h"

/*
 * Adds to the writing's batch, with the labels and times of `like`, whose bytes are the recording.
 * `labels` are those of its events (jfr_labels.h), or empty. Both may be gzip-compressed.
 */
MUST_USE int jfr_input_take(struct writing *writing, const struct ingest_pprof *like,
			    struct slice labels);

#endif
