/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_read - reads untrusted JSON, by jansson.
 *
 * JSON takes up to a hundred times the bytes of its text in memory: "{}," is 3 bytes of text and
 * 304 of memory. So the most that it can take is counted from the text first, and taken from a
 * budget until json_read_free. ERR_LIMIT and ERR_NO_MEMORY: the budget refuses (base/budget.h);
 * ERR_INVALID: it is no JSON, and where.
 */
#ifndef FIRN_CODEC_WIRE_JSON_READ_H
#define FIRN_CODEC_WIRE_JSON_READ_H

#include <jansson.h>

#include "base/err.h"
#include "base/slice.h"

struct budget; /* base/budget.h */

struct json_read {
	json_t *root;
	struct budget *budget;
	size_t paid_bytes;
};

/* `flags` are jansson's; `what` names the text in errors. To be freed in any case. */
MUST_USE int json_read(struct slice text, size_t flags, const char *what, struct budget *budget,
		       struct json_read *ret, struct err *err);
void json_read_free(struct json_read *read);

/*
 * Texts of what was read; they live as long as the value does. What is no text, or is not there, is
 * an empty one.
 */
struct slice json_text_of(const json_t *value);			   /* NULL is none */
struct slice json_text_at(const json_t *object, const char *name); /* a member's */

#endif
