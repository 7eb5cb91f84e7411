/* SPDX-License-Identifier: Apache-2.0 */
/* report_texts - distinct texts of a column, numbered in the order of their appearance. */
#ifndef FIRN_SERVER_SERVE_PARCA_REPORT_TEXTS_H
#define FIRN_SERVER_SERVE_PARCA_REPORT_TEXTS_H

#include "base/idmap.h"
#include "base/slice.h"

/* Starts zeroed. Texts are borrowed. */
struct report_texts {
	struct slice *list;
	size_t count, capacity;
	struct idmap map;
};

int32_t report_text(struct report_texts *texts, struct slice text);
void report_texts_free(struct report_texts *texts);

/* The address in "0x4a3f [libfoo.so]"; 0 when there is none. */
uint64_t report_address(struct slice name);

#endif
