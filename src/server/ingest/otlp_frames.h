/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_frames - stacks of an OTLP request's dictionary as nodes of the batch's trie. Each stack,
 * location and string is converted once per request, when a sample first needs it.
 */
#ifndef FIRN_SERVER_INGEST_OTLP_FRAMES_H
#define FIRN_SERVER_INGEST_OTLP_FRAMES_H

#include "server/ingest/scratch_int.h"

/* After scratch->otlp is decoded and the normaliser begun. */
int otlp_frames_begin(struct ingest_scratch *scratch, struct err *err);

/* The node of a stack; index 0 is the empty stack. Errors: an attribute's bytes are broken. */
int otlp_frames_stack(struct ingest_scratch *scratch, int64_t index, struct err *err,
		      uint32_t *ret);

#endif
