/* SPDX-License-Identifier: Apache-2.0 */
/*
 * letter_case - upper and lower case of UTF-8 text, letter by letter, without a locale, as Go's
 * strings.ToLower and ToUpper do it. Invalid UTF-8 stays as it is.
 */
#ifndef FIRN_CONFIG_LETTER_CASE_H
#define FIRN_CONFIG_LETTER_CASE_H

#include "base/strbuf.h"

void letter_case_lower(struct strbuf *out, struct slice text); /* appends */
void letter_case_upper(struct strbuf *out, struct slice text);

#endif
