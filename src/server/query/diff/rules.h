/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules - conditions that a diff must not meet: "total>5% significant, func("^json_")>10%"
 * (docs/api.md).
 *
 * Rules are separated by ',' or ';'; each one that holds is a breach. A rule holds if all its terms
 * do, which blanks separate; terms about functions must hold for the same function.
 */
#ifndef FIRN_SERVER_QUERY_DIFF_RULES_H
#define FIRN_SERVER_QUERY_DIFF_RULES_H

#include "base/err.h"
#include "base/slice.h"
#include "base/strbuf.h"
#include "server/query/tree/tree.h"

struct query_limits;

#define RULES_MAX 32
#define RULES_TERMS_MAX 8

struct regex; /* base/regex.h */

enum rules_term_kind { RULES_SIGNIFICANT, RULES_TOTAL, RULES_RATE, RULES_FUNC, RULES_SELF };

struct rules_term {
	enum rules_term_kind kind;
	struct regex *regex; /* of functions; NULL: any */
	bool shrinks;	     /* '<' */
	bool points;	     /* of the share, not of the value */
	double limit;	     /* 0.05 for 5% and for 5pt */
};

struct rules_rule {
	struct slice text; /* borrowed from what was parsed */
	struct rules_term terms[RULES_TERMS_MAX];
	size_t terms_count;
	bool of_functions, of_all, significant;
};

struct rules {
	struct rules_rule list[RULES_MAX];
	size_t count;
};

/* Errors quote the term and say what is expected. rules_free is due in any case. */
int rules_parse(struct slice text, struct rules *ret, struct err *err);
void rules_free(struct rules *rules);

/* True if the rules need `compare` (compare.h). */
bool rules_need_comparison(const struct rules *rules);

/*
 * Writes one line per breached rule, which says what breached it, to `report`; *ret: how many.
 * Regular expressions may take long: fails as query_limits_check does. `limits` may be NULL.
 */
int rules_judge(const struct rules *rules, const struct tree *tree,
		const struct query_limits *limits, struct strbuf *report, size_t *ret,
		struct err *err);

#endif
