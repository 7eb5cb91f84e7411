/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr_input - a Java flight recording in a request: each of its kinds becomes a profile.
 */
#ifndef FIRN_SERVER_SERVE_INTAKE_JFR_INPUT_H
#define FIRN_SERVER_SERVE_INTAKE_JFR_INPUT_H

#include "server/serve/intake/writing.h"

/*
 * Into the writing's batch, with labels and times of `like`, whose bytes are the recording. With it
 * may have come labels of its events (jfr_labels.h), else empty. Both are in gzip or not.
 */
MUST_USE int jfr_input_take(struct writing *writing, const struct ingest_pprof *like,
			    struct slice labels);

#endif
