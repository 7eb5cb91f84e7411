/* SPDX-License-Identifier: Apache-2.0 */
/*
 * any_text - an OTLP AnyValue as the text of a label: strings as they are, numbers and truth
 * values as JSON writes them, bytes as lower-case hex, arrays and lists as JSON.
 */
#ifndef FIRN_SERVER_INGEST_ANY_TEXT_H
#define FIRN_SERVER_INGEST_ANY_TEXT_H

#include "base/strbuf.h"
#include "codec/profile/otlp.h"

#define ANY_TEXT_DEPTH_MAX 16 /* arrays within arrays; deeper ones are written as null */

/*
 * Replaces the content of `out`. A text longer than bytes_max is cut somewhere after that. Errors:
 * the bytes are no AnyValue.
 */
int any_text(const struct otlp *request, const struct otlp_any *value, size_t bytes_max,
	     struct strbuf *out, struct err *err);

#endif
