/* SPDX-License-Identifier: Apache-2.0 */
/* manual - the manual page and shell completion, from the tables of verbs and options. */
#ifndef FIRN_CLI_MANUAL_H
#define FIRN_CLI_MANUAL_H

#include "base/strbuf.h"
#include "cli/verb.h"

/* firn(1), in man(7)'s language: every verb with its options. */
void manual_page(const struct verb *const *verbs, size_t count, struct strbuf *out);

/* docs/options.md: a table of options for each verb. */
void manual_markdown(const struct verb *const *verbs, size_t count, struct strbuf *out);

/* A script that completes verbs and options; false when the shell is none of bash, zsh, fish. */
bool manual_completion(const char *shell, const struct verb *const *verbs, size_t count,
		       struct strbuf *out);

#endif
