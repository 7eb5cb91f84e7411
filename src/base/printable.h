/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printable - outside text that a terminal or a log may show: names of threads, functions and
 * files, label values, messages that quote them, answers of other machines.
 *
 * Characters that a terminal obeys are shown as \uXXXX: control characters (C0, DEL, and C1, which
 * UTF-8 writes in two bytes), marks that change the direction of writing (which would show other
 * text than is there), line and paragraph separators, and bytes that are not UTF-8. All else stays,
 * the backslash too, so JSON keeps its values. Everything that prints outside text goes through
 * here.
 */
#ifndef FIRN_BASE_PRINTABLE_H
#define FIRN_BASE_PRINTABLE_H

#include <stdio.h>

#include "base/strbuf.h"

/* Appends `text` as part of one line: ends of lines and tabs are shown as \u000a and \u0009. */
void printable_add(struct strbuf *out, struct slice text);

/* The same for text of several lines: line ends and tabs stay. */
void printable_add_lines(struct strbuf *out, struct slice text);

/*
 * The length of the first character of `text` (not empty) if it may not be shown, with its code
 * point (or the byte that is not UTF-8) in *ret_code; 0 if it may be shown.
 */
size_t printable_command(struct slice text, uint32_t *ret_code);

/* Print as printable_add_lines does. */
void printable_write(FILE *to, struct slice text);
void printable_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
