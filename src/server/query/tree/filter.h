/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter - which stacks and which frames of an answer are shown, as people write it:
 *
 *     show-stack json_parse                 stacks with a function whose name contains that
 *     hide-stack function=~"epoll_.*"       not stacks with such a function
 *     show-from binary=nginx                stacks from the outermost frame in nginx on
 *     show-frame kind=cpython               of the stacks that are left, only these frames
 *     hide-frame binary^="libc.so",kind=native
 *
 * Several, separated by ';', apply together. A filter is an action and conditions on one frame,
 * separated by ',', that all have to hold: FIELD OP VALUE, where the field is function,
 * system_name, binary, file, kind, address or line; OP is = (is), *= (contains), ^= (starts with),
 * =~ (RE2, anchored as in selectors), or one of these negated: != !*= !^= !~. A value alone means
 * function*=VALUE. A value with blanks, ',' or ';' stands in double quotes, where \" and \\ mean
 * " and \. A binary is matched by its base name, or by its path when the value has a '/'.
 *
 * A frame here is one function of a call chain: each inlined one counts by itself. In filters on
 * stacks a negated condition must hold for every frame: `show-stack function!=main` shows stacks
 * without main. Values of stacks that are not shown are missing from the tree and counted in
 * tree->filtered; frames that are not shown give what was spent in them to their callers.
 */
#ifndef FIRN_SERVER_QUERY_TREE_FILTER_H
#define FIRN_SERVER_QUERY_TREE_FILTER_H

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"

struct regex; /* base/regex.h */

#define FILTERS_MAX 30
#define FILTER_CONDITIONS_MAX 8
#define FILTER_BYTES_MAX 16384

enum filter_action {
	FILTER_SHOW_STACK,
	FILTER_HIDE_STACK,
	FILTER_SHOW_FROM,
	FILTER_SHOW_FRAME,
	FILTER_HIDE_FRAME,
	FILTER_ACTIONS
};

enum filter_field {
	FILTER_FUNCTION,
	FILTER_SYSTEM_NAME,
	FILTER_BINARY,
	FILTER_FILE,
	FILTER_KIND,
	FILTER_ADDRESS,
	FILTER_LINE,
	FILTER_FIELDS
};

enum filter_op { FILTER_IS, FILTER_CONTAINS, FILTER_STARTS_WITH, FILTER_REGEX };

struct filter_condition {
	enum filter_field field;
	enum filter_op op;
	bool negated;
	bool any_case; /* not for regular expressions: they say it themselves */
	struct slice text;
	uint64_t number;     /* of address and line */
	struct regex *regex; /* of FILTER_REGEX */
};

struct filter {
	enum filter_action action;
	struct filter_condition conditions[FILTER_CONDITIONS_MAX];
	size_t conditions_count;
};

/* Starts zeroed; filter_list_free is due. Immutable while queries use it. */
struct filter_list {
	struct filter list[FILTERS_MAX];
	size_t count;
	struct arena arena; /* the texts */
};

/* Adds the filters of a text. Errors name the column (1-based) and what was expected there. */
int filter_list_parse(struct filter_list *filters, struct slice text, struct err *err);
void filter_list_free(struct filter_list *filters);

/*
 * Adds one without conditions (NULL when there are FILTERS_MAX), and a condition to it; the text is
 * copied. ERR_INVALID for what no text could say either.
 */
struct filter *filter_list_add(struct filter_list *filters, enum filter_action action);
int filter_add_condition(struct filter_list *filters, struct filter *filter,
			 const struct filter_condition *condition, struct err *err);

/* In one canonical spelling, which filter_list_parse reads back. */
void filter_list_format(struct strbuf *out, const struct filter_list *filters);

#endif
