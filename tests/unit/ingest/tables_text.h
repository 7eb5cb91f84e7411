/* SPDX-License-Identifier: Apache-2.0 */
/* tables_text - what tables say, as text that does not depend on ids, for comparing. */
#ifndef FIRN_TESTS_TABLES_TEXT_H
#define FIRN_TESTS_TABLES_TEXT_H

#include "base/strbuf.h"
#include "model/tables.h"

/*
 * Appends one line per row and one per report, sorted; a report's line has its totals. Batch ids
 * are left out.
 */
void tables_text_add(struct strbuf *out, const struct tables *tables);

/* One frame: kind flags address mapping build-id function (system name) file:line:column start. */
void tables_text_add_frame(struct strbuf *out, const struct tables_view *view, uint32_t frame);

/* Fails the test, showing the first difference. */
void assert_same_tables(const struct tables *expected, const struct tables *found);

#endif
