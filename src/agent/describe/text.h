/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text - names that programs chose (comm, paths) on their way into tables: made valid UTF-8 (every
 * byte of a bad one beyond ASCII becomes '?') and cut at TEXT_BYTES_MAX.
 */
#ifndef FIRN_AGENT_DESCRIBE_TEXT_H
#define FIRN_AGENT_DESCRIBE_TEXT_H

#include "model/tables.h"

#define TEXT_BYTES_MAX 4096

/* The text, or what is made of it in `clean`. */
struct slice text_clean(struct slice text, char clean[TEXT_BYTES_MAX]);

uint32_t text_intern(struct tables *tables, struct slice text);

#endif
