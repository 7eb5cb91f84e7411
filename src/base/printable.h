/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printable - outside text that a terminal or a log may show: names of threads, functions and
 * files, label values, messages that quote them, answers of other machines.
 *
 * What a terminal obeys is shown as \uXXXX instead: control characters (C0, DEL, and C1, which
 * UTF-8 writes in two bytes), what turns the direction of writing (its reader would see other text
 * than is there), line and paragraph separators, and bytes that are no UTF-8. All else stays, the
 * backslash too; JSON stays the same JSON. Everything that prints text goes through here.
 */
#ifndef FIRN_BASE_PRINTABLE_H
#define FIRN_BASE_PRINTABLE_H

#include <stdio.h>

#include "base/strbuf.h"

/* Appends `text` as part of one line: ends of lines and tabs are shown as \u000a and \u0009. */
void printable_add(struct strbuf *out, struct slice text);

/* The same of text that has lines: these and tabs stay. */
void printable_add_lines(struct strbuf *out, struct slice text);

/*
 * Bytes of the character that `text` (not empty) begins with when it may not be shown, and its
 * number in *ret_code (of a byte that is no UTF-8: the byte); 0 when it may.
 */
size_t printable_command(struct slice text, uint32_t *ret_code);

/* Printing, as printable_add_lines. */
void printable_write(FILE *to, struct slice text);
void printable_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
