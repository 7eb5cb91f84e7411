/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_summary - a readable summary of a stored request: the types of its reports, rows and totals
 * of each, and repairs. A sender asks for it with a header.
 */
#ifndef FIRN_SERVER_SERVE_INTAKE_WRITE_SUMMARY_H
#define FIRN_SERVER_SERVE_INTAKE_WRITE_SUMMARY_H

#include "base/strbuf.h"
#include "model/tables.h"
#include "server/persist/batch/append.h"

#define WRITE_SUMMARY_HEADER "firn-summary"
#define WRITE_SUMMARY_FIELD 1000 /* of WriteRawResponse and of OTLP's answer: the text */

/*
 * Lines of text, each ended. `batch` is what was appended with `result`, by this thread, which has
 * called repairs_begin_request before it took the request.
 */
void write_summary_add(const struct tables_view *batch, const struct append_result *result,
		       struct strbuf *out);

#endif
