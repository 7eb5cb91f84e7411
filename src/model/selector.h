/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selector - a query's selection of series, as people type it:
 *
 *     on_cpu:samples:count:cpu:nanoseconds:delta{comm="nginx",pod!="",node=~"web-.+"}
 *
 * Grammar: a profile type (profile_type.h; may be empty to mean every type), then optional
 * matchers in braces: NAME OP "VALUE" with OP one of = != =~ !~. A name is letters, digits, '_',
 * '.', '-', '/' or ':', or is itself quoted ("k8s.pod/name"). Values may also be quoted by ', and
 * take the escapes \\ \" \n \t and the others of PromQL (\x41, \101, \u0041) but \b; a value quoted
 * by ` has no escapes. A trailing comma is allowed. Regular expressions are RE2, anchored at both
 * ends; dot matches newline; matching takes linear time. A series without the label has the value
 * "", except that each has a service_name (service.h).
 *
 * Immutable after parsing; matching is thread-safe.
 */
#ifndef FIRN_MODEL_SELECTOR_H
#define FIRN_MODEL_SELECTOR_H

#include "base/err.h"
#include "base/strbuf.h"
#include "model/profile_type.h"
#include "model/tables.h"

#define SELECTOR_BYTES_MAX 16384
#define SELECTOR_MATCHERS_MAX 64

enum matcher_op { MATCH_EQUAL, MATCH_NOT_EQUAL, MATCH_REGEX, MATCH_NOT_REGEX };

struct regex; /* base/regex.h */

struct matcher {
	enum matcher_op op;
	struct slice name;
	struct slice value;
	struct regex *regex; /* for the two regex operators */
};

struct selector {
	bool has_type;
	struct profile_type type;
	struct matcher *matchers;
	size_t matchers_count;
	char *bytes; /* owns the unescaped text */
};

/* Errors name the column (1-based) and what is expected there. */
int selector_parse(struct slice text, struct selector *ret, struct err *err);
void selector_free(struct selector *selector);

/* The selector in one canonical spelling, which selector_parse reads back. */
void selector_format(struct strbuf *out, const struct selector *selector);

bool matcher_matches(const struct matcher *matcher, struct slice value);

/*
 * True if a label set satisfies all matchers. Callers with many series should match each distinct
 * value once.
 */
bool selector_matches(const struct selector *selector, const struct tables_view *view,
		      uint32_t label_set);

#endif
