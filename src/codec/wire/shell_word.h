/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shell_word - quotes a text as one word of a POSIX shell (POSIX.1-2017, Shell Command Language,
 * 2.2.2), so that file names cannot inject commands into the commands that we show. A pure
 * function.
 */
#ifndef FIRN_CODEC_WIRE_SHELL_WORD_H
#define FIRN_CODEC_WIRE_SHELL_WORD_H

#include "base/slice.h"
#include "base/strbuf.h"

/* As it is where nothing in it has a meaning, else in single quotes. It has no NUL. */
void shell_word_add(struct slice text, struct strbuf *out);

#endif
